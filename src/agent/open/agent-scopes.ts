import type { ActionContext } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import { addressTo, failedPrecondition, invalidArgument, quote, StateError } from '../../errors.ts';
import { contextAs, userOf, verifiedUser, type SessionOwner } from '../../session/owner.ts';
import { configureState, type StateSetting } from '../../session/state/session-state.ts';
import type { Session } from '../../session/session.ts';
import { parseStateKey } from '../../session/state/state-keys.ts';
import { resolveLimits, StateRules } from '../../session/state/state-values.ts';
import { assertId } from '../../snapshot/ids.ts';
import {
  keepsScopes,
  type ScopeChange,
  type ScopeId,
  type ScopeRecord,
  type ScopeStore,
} from '../../store/contract.ts';
import { erasureFence, erasuresOf } from '../../store/records/erasure.ts';
import type { AgentDefinition, AgentScopes } from '../agent-definition.ts';
import type { AgentStateOptions } from '../types.ts';

export interface Caller {
  readonly context: ActionContext | undefined;
  readonly userId: string | undefined;
}

export interface Records {
  user?: ScopeRecord;
  app?: ScopeRecord;
}

/**
 * Applies the defaults to the options of the shared state, and checks them.
 *
 * @param options The agent's options over the runtime's defaults.
 * @throws `INVALID_ARGUMENT` for an invalid option, `FAILED_PRECONDITION` for scopes without a store that keeps them.
 */
export function resolveScopes<State>(
  name: string,
  options: Pick<
    AgentStateOptions<State>,
    'appName' | 'userId' | 'scopes' | 'limits' | 'outputKey' | 'stateSchema' | 'signState'
  >,
  store: SessionStore<State> | undefined,
): AgentScopes {
  const { appName = name, userId = verifiedUser, scopes = {}, outputKey } = options;
  assertId(appName, 'appName');
  const output = outputKey === undefined ? undefined : parseStateKey(outputKey).scope;
  const used = (['user', 'app'] as const).filter((scope) => scopes[scope] !== undefined || scope === output);
  if (used.length > 0 && !(store && keepsScopes(store))) {
    throw failedPrecondition(
      `Agent '${name}' uses shared state ('${used.join(":', '")}:'), but ${store ? 'its store keeps no scopes' : 'has no store'}. ` +
        `Give it a store with capabilities.scopes, or remove scopes${scopes[used[0]!] ? '' : ' and this outputKey'}.`,
    );
  }
  const setting: StateSetting = {
    missing: { user: whyMissing(name, used, 'user'), app: whyMissing(name, used, 'app') },
    schemas: { ...(options.stateSchema && { plain: options.stateSchema }), ...scopes },
    ...(options.limits && { limits: resolveLimits(options.limits) }),
  };
  assertOutputKey(name, outputKey, setting);
  // States that a caller could forge are refused if they have prefixed keys, so they must not be sent out with such keys.
  const reservesPrefixes = used.length > 0 || (!store && options.signState === undefined);
  return { appName, userIdOf: userId, used, outputKey, reservesPrefixes, setting };
}

function assertOutputKey(name: string, outputKey: string | undefined, { limits, schemas = {} }: StateSetting): void {
  if (outputKey === undefined) return;
  if (outputKey === '') {
    throw invalidArgument(`Agent '${name}': outputKey must be a key, such as 'last_reply' or 'user:last_reply'.`);
  }
  const { plain, user, app } = schemas;
  try {
    new StateRules(limits, { session: plain, user, app }).assertUsable(outputKey);
  } catch (error) {
    if (!StateError.isInstance(error)) throw error;
    throw invalidArgument(`Agent '${name}': outputKey ${quote(outputKey)} can't be used: ${error.reason}.`);
  }
}

/**
 * The caller that the context names.
 *
 * @throws `FAILED_PRECONDITION` when its user id is invalid.
 */
export function callerOf<State>({ name, scopes }: AgentDefinition<State>, context: ActionContext | undefined): Caller {
  const named = scopes.userIdOf(context ?? {}) as unknown;
  const userId = userOf(context, named);
  if (userId === undefined) return { context, userId };
  try {
    assertId(userId, 'userId');
    return { context, userId };
  } catch {
    const message = `The user id of a call of agent '${name}' must be a string of 1 to 1,024 characters that is not blank, or undefined: check context.auth.uid, or the agent's userId.`;
    throw addressTo('operator', failedPrecondition(message));
  }
}

/**
 * Runs as `userId` instead of the user that the context names; this includes the agents that the run calls. A context that is derived from this one and
 * names a third user runs as that user.
 */
export function callerAs<State>(
  { scopes }: AgentDefinition<State>,
  context: ActionContext | undefined,
  userId: string | undefined,
): Caller {
  let named: unknown;
  try {
    named = scopes.userIdOf(context ?? {});
  } catch {
    // If the context's own user is unknown, a later change of user can't be detected.
    return { context, userId };
  }
  if (named === userId) return { context, userId };
  return { context: contextAs(context, named, userId), userId };
}

/** The owner of a session that the caller begins; none when the context names no user. */
export function ownerFor<State>({ scopes }: AgentDefinition<State>, { userId }: Caller): SessionOwner | undefined {
  return userId === undefined ? undefined : { appName: scopes.appName, userId };
}

/**
 * A check for the saves of a turn: they fail if the user's data was erased while the turn ran. Most turns don't need it, because their
 * session is erased too and refuses the save. A turn needs it if it begins a session, or changes the caller's record from another user's
 * session. Reads one document.
 */
export async function readErasureFence<State>(
  { store, can, scopes }: AgentDefinition<State>,
  { context, userId }: Caller,
  { isNew, owner }: { isNew: boolean; owner: SessionOwner | undefined },
): Promise<ScopeChange | undefined> {
  const isForeign = scopes.used.includes('user') && owner?.userId !== userId;
  if (userId === undefined || !can.scopes || !can.details || !(isNew || isForeign)) return undefined;
  const [seen] = await (store as SessionStore<State> & ScopeStore).readScopes({
    context,
    scopes: [erasuresOf(userId)],
  });
  return erasureFence(userId, seen!);
}

/** Reads the records of the scopes that the agent uses, one document each; `undefined` when there is nothing to read. */
export function readRecords<State>(agent: AgentDefinition<State>, caller: Caller): Promise<Records> | undefined {
  const ids = idsOf(agent, caller);
  if (ids.length === 0) return undefined;
  const store = agent.store as SessionStore<State> & ScopeStore;
  const reading = store
    .readScopes({ context: caller.context, scopes: ids })
    .then((records) => Object.fromEntries(ids.map(({ scope }, i) => [scope, records[i]])));
  // Marks the rejection as handled: the turn may fail before this read does.
  reading.catch(() => {});
  return reading;
}

/** Gives the session its scoped state: the records as they were read, and the schemas of the keys. */
export function placeRecords<State>(
  agent: AgentDefinition<State>,
  session: Session<State>,
  caller: Caller,
  records: Records | undefined,
): void {
  const { setting, reservesPrefixes } = agent.scopes;
  const open = idsOf(agent, caller).map((id) => [id.scope, { id, record: records?.[id.scope] ?? {} }]);
  configureState(session, { ...setting, ...Object.fromEntries(open) }, { reservesPrefixes });
}

function idsOf<State>({ scopes }: AgentDefinition<State>, { userId }: Caller): readonly ScopeId[] {
  const { appName, used } = scopes;
  if (used.length === 0) return [];
  return used.flatMap((scope): ScopeId[] => {
    if (scope === 'app') return [{ scope, appName }];
    return userId === undefined ? [] : [{ scope, appName, userId }];
  });
}

function whyMissing(name: string, used: AgentScopes['used'], scope: ScopeId['scope']): string {
  return used.includes(scope)
    ? `the call names no user; its context has no auth.uid, or the userId of agent ${quote(name)} returned none`
    : `agent ${quote(name)} does not declare such keys; set scopes: { ${scope}: z.object({ ... }) } and a store that keeps scopes`;
}
