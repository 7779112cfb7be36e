import { GenkitError } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import { JsonValueError } from '../../json/value.ts';
import { statusOf } from '../runtime-error.ts';

/** Pauses before further attempts of a call that failed, in ms. */
const PAUSES_MS = [25, 200];

/** Failures that a further attempt may not have. An error that is not a `GenkitError` counts as `INTERNAL`. */
const TRANSIENT = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'INTERNAL', 'UNKNOWN']);

type Calls = { [name: string]: (options: object) => Promise<unknown> };

/** The calls besides a save, with their names in messages. */
const CALLS = {
  getSnapshot: 'read',
  getSnapshotMetadata: 'read',
  listSessions: 'list',
  listSnapshots: 'list',
  readScopes: 'read',
  readRecords: 'read',
  writeRecord: 'write',
};

/** Bounded stores by store and time budget. */
const bounded = new WeakMap<object, Map<number, unknown>>();

/**
 * The store as the runtime calls it. Each call has one time budget: within it, a transient failure is retried, and when the budget is used up
 * the call fails with `DEADLINE_EXCEEDED`. A save that timed out writes nothing, unless its commit has already begun. A
 * write of a session record that timed out may still be made, and one whose answer was lost is `ABORTED` when it expects a revision.
 *
 * Agents with one store and one budget get the same object, so that their memory lists the store's sessions once.
 */
export function boundedStore<State>(store: SessionStore<State>, timeoutMs: number): SessionStore<State> {
  const known = bounded.get(store) ?? new Map<number, unknown>();
  bounded.set(store, known);
  const one = known.get(timeoutMs) ?? withTimeLimit(store, timeoutMs);
  known.set(timeoutMs, one);
  return one as SessionStore<State>;
}

function withTimeLimit<State>(store: SessionStore<State>, timeoutMs: number): SessionStore<State> {
  const methods = store as unknown as Calls;
  const calls: Calls = {};
  for (const [name, what] of Object.entries(CALLS)) {
    if (methods[name]) calls[name] = (options) => within(timeoutMs, what, () => methods[name]!(options));
  }
  return {
    ...(calls as Pick<SessionStore<State>, 'getSnapshot'>),
    saveSnapshot: (snapshotId, mutator, options) =>
      within(timeoutMs, 'save', (isGivenUp) =>
        store.saveSnapshot(snapshotId, (current) => (isGivenUp() ? null : mutator(current)), options),
      ),
    ...(store.onSnapshotStateChange && { onSnapshotStateChange: store.onSnapshotStateChange.bind(store) }),
  };
}

const SOON = Promise.resolve();

function within<T>(ms: number, what: string, work: (isGivenUp: () => boolean) => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let isOver = false;
    let isGivenUp = false;
    let timer: NodeJS.Timeout | undefined;
    const end = (settle: () => void) => {
      isOver = true;
      clearTimeout(timer);
      settle();
    };
    const giveUp = () => {
      isGivenUp = true;
      const message = `The session store did not answer a ${what} within ${ms} ms.`;
      end(() => reject(new GenkitError({ status: 'DEADLINE_EXCEEDED', message })));
    };
    const attempt = (pauses: readonly number[]) => {
      if (isOver) return;
      const onError = (error: unknown) => {
        const [pauseMs, ...rest] = pauses;
        if (isOver) return;
        if (pauseMs === undefined || !isTransient(error)) end(() => reject(error));
        else setTimeout(() => attempt(rest), pauseMs);
      };
      try {
        work(() => isGivenUp).then((answer) => end(() => resolve(answer)), onError);
      } catch (error) {
        onError(error);
      }
    };
    attempt(PAUSES_MS);
    const limit = () => {
      if (!isOver) timer = setTimeout(giveUp, ms);
    };
    // A store in memory has answered by then; creating a timer would dominate the cost of its call.
    void SOON.then(limit);
  });
}

/** Whether a further attempt may not have the failure. */
export function isTransient(error: unknown): boolean {
  try {
    return !JsonValueError.isInstance(error) && TRANSIENT.has(statusOf(error));
  } catch {
    // Reading a member of a thrown value may throw.
    return false;
  }
}
