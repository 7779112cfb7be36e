import type { ActionContext } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import { addressTo, failedPrecondition, invalidArgument, quote, StateError } from '../../errors.ts';
import type { SessionOwner } from '../../session/log/session-log.ts';
import { placeState, type StateSetting } from '../../session/state/session-state.ts';
import type { Session } from '../../session/session.ts';
import { parseStateKey } from '../../session/state/state-keys.ts';
import { settleLimits, StateRules } from '../../session/state/state-values.ts';
import { assertId } from '../../snapshot/ids.ts';
import { keepsScopes, type ScopeId, type ScopeRecord, type ScopeStore } from '../../store/contract.ts';
import { checkOptions } from '../../store/options.ts';
import type { AgentDefinition, AgentScopes } from '../agent-definition.ts';
import type { AgentStateOptions } from '../types.ts';

/** The caller of an agent. */
export interface Caller {
  readonly context: ActionContext | undefined;
  readonly userId: string | undefined;
}

/** The records that a turn begins with. */
export interface Records {
  user?: ScopeRecord;
  app?: ScopeRecord;
}

/**
 * Settles what the options say of the shared state.
 *
 * @param options The agent's, over the defaults.
 * @throws `INVALID_ARGUMENT` for what can't be, `FAILED_PRECONDITION` for scopes without a store that keeps them.
 */
export function settleScopes<State>(
  name: string,
  options: Pick<
    AgentStateOptions<State>,
    'appName' | 'userId' | 'scopes' | 'limits' | 'outputKey' | 'stateSchema' | 'signState'
  >,
  store: SessionStore<State> | undefined,
): AgentScopes {
  const { appName = name, userId = verifiedUser, scopes = {}, outputKey } = options;
  if (typeof userId !== 'function') throw invalidArgument(`Agent '${name}': userId must be a function of the context.`);
  assertId(appName, 'appName');
  checkOptions(`Agent '${name}': scopes`, scopes, { user: isSchema, app: isSchema });
  const output = typeof outputKey === 'string' ? parseStateKey(outputKey).scope : undefined;
  const used = (['user', 'app'] as const).filter((scope) => scopes[scope] !== undefined || scope === output);
  if (used.length > 0 && !(store && keepsScopes(store))) {
    throw failedPrecondition(
      `Agent '${name}' has shared state ('${used.join(":', '")}:'), and ${store ? 'its store keeps none' : 'no store to keep it'}: ` +
        `give it a store with capabilities.scopes, or leave scopes${scopes[used[0]!] ? '' : ' and such an outputKey'} out.`,
    );
  }
  const setting: StateSetting = {
    missing: { user: whyMissing(name, used, 'user'), app: whyMissing(name, used, 'app') },
    schemas: { ...(options.stateSchema && { plain: options.stateSchema }), ...scopes },
    ...(options.limits && { limits: settleLimits(options.limits) }),
  };
  assertOutputKey(name, outputKey, setting);
  // What anybody can write is refused when it comes back, so it must not go out.
  const reservesPrefixes = used.length > 0 || (!store && options.signState === undefined);
  return { appName, userIdOf: userId, used, outputKey, reservesPrefixes, setting };
}

function assertOutputKey(name: string, outputKey: unknown, { limits, schemas = {} }: StateSetting): void {
  if (outputKey === undefined) return;
  if (typeof outputKey !== 'string' || outputKey === '') {
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

function isSchema(value: unknown): string | undefined {
  return typeof (value as { safeParse?: unknown } | null)?.safeParse === 'function'
    ? undefined
    : "a Zod schema, made with genkit's z";
}

/** The user whom the server has verified: what Genkit's context providers put there. */
function verifiedUser({ auth }: ActionContext): string | undefined {
  const uid: unknown = auth?.['uid'];
  return typeof uid === 'string' && uid !== '' ? uid : undefined;
}

/**
 * Who calls, by the context.
 *
 * @throws `INTERNAL` when the agent's `userId` answers what is no name.
 */
export function callerOf<State>({ name, scopes }: AgentDefinition<State>, context: ActionContext | undefined): Caller {
  const named = scopes.userIdOf(context ?? {}) as unknown;
  const { [STAND_IN]: stand }: StandInContext = context ?? {};
  const userId = stand && stand.named === named ? stand.userId : named;
  if (userId === undefined) return { context, userId };
  try {
    assertId(userId, 'userId');
    return { context, userId };
  } catch {
    const message = `The userId of agent '${name}' must answer a string of 1 to 1,024 characters that is not blank, or undefined.`;
    throw addressTo('operator', failedPrecondition(message));
  }
}

/** What makes a context stand for another user than it names. Registered: the package's other copy in the process knows it too. */
const STAND_IN = Symbol.for('genkitx-agents.stand-in');

interface StandInContext extends ActionContext {
  readonly [STAND_IN]?: {
    /** Whom the context names. */
    readonly named: unknown;
    /** Whom it stands for. */
    readonly userId: string | undefined;
  };
}

/**
 * Who calls in the place of somebody else: what the run does, and the agents that it calls, is the doing of `userId`, whoever the context
 * names. A context that is made from this one and names yet another user means that user.
 */
export function standInFor<State>(
  { scopes }: AgentDefinition<State>,
  context: ActionContext | undefined,
  userId: string | undefined,
): Caller {
  let named: unknown;
  try {
    named = scopes.userIdOf(context ?? {});
  } catch {
    // Of who names nobody at all it can't be said who is meant.
    return { context, userId };
  }
  if (named === userId) return { context, userId };
  // A symbol goes along with copies, and is in no JSON.
  const standIn: StandInContext = { ...context, [STAND_IN]: { named, userId } };
  return { context: standIn, userId };
}

/** Whose a session is that the caller begins; nobody's when the context names no user. */
export function ownerFor<State>({ scopes }: AgentDefinition<State>, { userId }: Caller): SessionOwner | undefined {
  return userId === undefined ? undefined : { appName: scopes.appName, userId };
}

/** Reads the records of the scopes that the agent uses, one document each; `undefined` when there is nothing to read. */
export function readRecords<State>(agent: AgentDefinition<State>, caller: Caller): Promise<Records> | undefined {
  const ids = idsOf(agent, caller);
  if (ids.length === 0) return undefined;
  const store = agent.store as SessionStore<State> & ScopeStore;
  const reading = store
    .readScopes({ context: caller.context, scopes: ids })
    .then((records) => Object.fromEntries(ids.map(({ scope }, i) => [scope, records[i]])));
  // The turn may have failed before this does.
  reading.catch(() => {});
  return reading;
}

/** Gives the session its state: the records as they were read, and what the keys must be. */
export function placeRecords<State>(
  agent: AgentDefinition<State>,
  session: Session<State>,
  caller: Caller,
  records: Records | undefined,
): void {
  const { setting, reservesPrefixes } = agent.scopes;
  const open = idsOf(agent, caller).map((id) => [id.scope, { id, record: records?.[id.scope] ?? {} }]);
  placeState(session, { ...setting, ...Object.fromEntries(open) }, { reservesPrefixes });
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
    ? `the call names no user; its context has no auth.uid, or the userId of agent ${quote(name)} found none`
    : `agent ${quote(name)} does not say that it uses such keys; give it scopes: { ${scope}: z.object({ ... }) }, and a store that keeps scopes`;
}
