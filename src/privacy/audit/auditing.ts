import type { ActionContext, GenkitError } from 'genkit';
import { invalidArgument } from '../../errors.ts';
import { membersOf } from '../../json/fault.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import type { ScopeId, SnapshotStore } from '../../store/contract.ts';
import { isFunction } from '../../store/check-options.ts';
import { notify } from '../../store/parts/notify.ts';

/** One access to the data of a store. It has ids and no content. */
export interface AccessEvent {
  /** What was done. Deleting and pruning are `erase`. */
  readonly action: 'read' | 'write' | 'list' | 'export' | 'erase';
  /** The method or function: `getSnapshot`, `eraseUser`. */
  readonly operation: string;
  /** The caller's context, with the tenant and the user. It may hold a token from your context provider: choose what you log. */
  readonly context?: ActionContext;
  /** The session, where it is known. */
  readonly sessionId?: string;
  /** The sessions, if the call deleted several. */
  readonly sessionIds?: readonly string[];
  /** The snapshot, where one was named or saved. */
  readonly snapshotId?: string;
  /** The user whose data is listed, exported or erased. */
  readonly userId?: string;
  /** The records of users and apps. */
  readonly scopes?: readonly ScopeId[];
  /** `none`: there was nothing to read or to erase, or a mutator skipped its save. */
  readonly outcome: 'ok' | 'none' | 'failed';
  /** The status of the error of a failed access, for example `UNAVAILABLE`. Optional. */
  readonly status?: string;
}

/** Options of {@link auditing}. */
export interface AuditingOptions {
  /**
   * Called after each access, before the caller gets the result; not awaited. If it throws or rejects, the error is logged and the access is
   * not affected: a turn must not fail because the audit log is unavailable.
   */
  readonly onAccess: (event: AccessEvent) => unknown;
}

/** The part of an event that is known before the access. */
type Access = Omit<AccessEvent, 'outcome' | 'status'>;

const ACTIONS: Readonly<Record<string, AccessEvent['action']>> = {
  getSnapshot: 'read',
  getSnapshotMetadata: 'read',
  onSnapshotStateChange: 'read',
  readScopes: 'read',
  readRecords: 'read',
  saveSnapshot: 'write',
  writeRecord: 'write',
  listSnapshots: 'list',
  listSessions: 'list',
  listScopes: 'list',
  check: 'list',
  deleteSession: 'erase',
  deleteSessions: 'erase',
  deleteScope: 'erase',
  prune: 'erase',
  // A method of stores that remove whole tenants.
  erase: 'erase',
};

/** The callbacks of auditing stores. */
const callbacks = new WeakMap<object, AuditingOptions['onAccess']>();

/**
 * Wraps a store so that each read, write, list, export and erasure is reported. Put it around all other wrappers, so that it sees the calls
 * of the callers. `exportUser` and `eraseUser` are reported, too, besides the calls of the store that they make.
 *
 * @throws `INVALID_ARGUMENT` without a store or a function.
 * @example
 * import { InMemorySessionStore } from 'genkitx-agents';
 * import { auditing } from 'genkitx-agents/privacy';
 * const store = auditing(new InMemorySessionStore(), {
 *   onAccess: ({ action, sessionId, outcome }) => console.log(action, sessionId, outcome),
 * });
 */
export function auditing<T extends Pick<SnapshotStore, 'getSnapshot' | 'saveSnapshot'>>(
  store: T,
  { onAccess }: AuditingOptions,
): T {
  if (typeof store?.getSnapshot !== 'function') throw invalidArgument('auditing needs a session store.');
  const wrong = isFunction(onAccess);
  if (wrong) throw invalidArgument(`auditing needs an 'onAccess': ${wrong}.`);
  const methods = new Map<unknown, unknown>();
  const audited = new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      // One wrapper for each method, so that `store.getSnapshot === store.getSnapshot`.
      if (!methods.has(member)) methods.set(member, methodOf(target, String(name), member as Method, onAccess));
      return methods.get(member);
    },
  });
  callbacks.set(audited, onAccess);
  return audited;
}

/** Runs a function such as `eraseUser`, and reports it if the store is audited. */
export async function reportAccess<R>(store: object, access: Access, run: () => Promise<R>): Promise<R> {
  const onAccess = callbacks.get(store);
  return onAccess ? report(onAccess, access, run) : run();
}

/** Reports an access if the store is audited. */
export function noteAccess(store: object, event: AccessEvent): void {
  const onAccess = callbacks.get(store);
  if (onAccess) emit(onAccess, event);
}

type Method = (...args: unknown[]) => unknown;

function methodOf(store: object, name: string, method: Method, onAccess: AuditingOptions['onAccess']): Method {
  const call: Method = (...args) => method.apply(store, args);
  const action = ACTIONS[name];
  if (!action) return call;
  if (name === 'onSnapshotStateChange') {
    return (snapshotId, callback, options) => {
      const end = call(snapshotId, callback, options);
      emit(onAccess, { action, operation: name, ...namesIn({ snapshotId }, options), outcome: 'ok' });
      return end;
    };
  }
  if (name === 'saveSnapshot') {
    return (snapshotId, mutator, options) => {
      let sessionId: string | undefined;
      const observing = (current: unknown): unknown => {
        const answer = (mutator as Method)(current);
        sessionId = sessionOf(answer ?? {});
        return answer;
      };
      const names = namesIn({ snapshotId }, options);
      return report(
        onAccess,
        { action, operation: name, ...names },
        () => call(snapshotId, typeof mutator === 'function' ? observing : mutator, options) as Promise<unknown>,
        (savedId) => ({ ...(typeof savedId === 'string' && { snapshotId: savedId }), ...namesIn({ sessionId }) }),
      );
    };
  }
  return (...args) => {
    const isDryRun = name === 'prune' && membersOf(args[1])['dryRun'] === true;
    const access = { action: isDryRun ? 'list' : action, operation: name, ...namesIn(...args) } as const;
    const found = (answer: unknown) => (name.startsWith('getSnapshot') ? namesIn(answer) : {});
    return report(onAccess, access, () => call(...args) as Promise<unknown>, found);
  };
}

async function report<R>(
  onAccess: AuditingOptions['onAccess'],
  access: Access,
  run: () => Promise<R>,
  found: (answer: R) => Partial<Access> = () => ({}),
): Promise<R> {
  try {
    const answer = await run();
    emit(onAccess, { ...access, ...found(answer), outcome: isNothing(answer) ? 'none' : 'ok' });
    return answer;
  } catch (error) {
    const { status } = (error ?? {}) as Partial<GenkitError>;
    emit(onAccess, { ...access, outcome: 'failed', ...(typeof status === 'string' && { status }) });
    throw error;
  }
}

function isNothing(answer: unknown): boolean {
  if (answer === undefined || answer === null || answer === false) return true;
  const { snapshots, ...others } = membersOf(answer);
  // The counts of a removal: it may have found records only.
  return snapshots === 0 && !Object.values(others).some((count) => typeof count === 'number' && count > 0);
}

function emit(onAccess: AuditingOptions['onAccess'], event: AccessEvent): void {
  notify(() => onAccess(event), 'onAccess failed, so an access was not reported. The access is not affected.');
}

/** The ids in the arguments or the result of a method. */
function namesIn(...values: unknown[]): Partial<Access> {
  const { sessionId, sessionIds, snapshotId, context, ownerId, scope, scopes, ...rest } = Object.assign(
    {},
    ...values.map(membersOf),
  ) as {
    [name: string]: unknown;
    sessionIds?: readonly string[];
    context?: ActionContext;
    scope?: ScopeId;
  };
  const session = sessionId ?? sessionOf({ state: rest['state'] as { sessionId?: string } });
  // If it is not a list, the store refuses it.
  const listed = Array.isArray(scopes) ? (scopes as unknown[]).map((each) => membersOf(each)['id'] ?? each) : [];
  const ids = (scope ? [scope] : listed) as ScopeId[];
  return {
    ...(typeof session === 'string' && { sessionId: session }),
    ...(sessionIds && { sessionIds }),
    ...(typeof snapshotId === 'string' && { snapshotId }),
    ...(typeof ownerId === 'string' && { userId: ownerId }),
    ...(context && { context }),
    ...(ids.length > 0 && { scopes: ids }),
  };
}
