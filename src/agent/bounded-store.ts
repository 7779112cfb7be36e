import { GenkitError } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import type { PageOptions, ScopeStore, SnapshotLookup, SnapshotStore } from '../store/contract.ts';

/** Marks the errors of {@link boundedStore}: repeating a call that hung would hang again. */
const TIMED_OUT = Symbol('timed out');

/**
 * The store, each of whose calls is given up when it does not answer in time. A save that was given up writes nothing any more, unless it is
 * at it already.
 */
export function boundedStore<State>(store: SessionStore<State>, timeoutMs: number): SessionStore<State> {
  const { getSnapshotMetadata, listSessions, listSnapshots, readScopes } = store as Partial<
    SnapshotStore<State> & ScopeStore
  >;
  const lists = listSessions &&
    listSnapshots && {
      listSessions: (options?: PageOptions) => within(timeoutMs, 'list', () => listSessions.call(store, options)),
      listSnapshots: (options: PageOptions & { sessionId: string }) =>
        within(timeoutMs, 'list', () => listSnapshots.call(store, options)),
    };
  const metadata = getSnapshotMetadata && {
    getSnapshotMetadata: (lookup: SnapshotLookup) =>
      within(timeoutMs, 'read', () => getSnapshotMetadata.call(store, lookup)),
  };
  const scopes = readScopes && {
    readScopes: (options: Parameters<typeof readScopes>[0]) =>
      within(timeoutMs, 'read', () => readScopes.call(store, options)),
  };
  return {
    ...metadata,
    ...lists,
    ...scopes,
    getSnapshot: (lookup) => within(timeoutMs, 'read', () => store.getSnapshot(lookup)),
    saveSnapshot: (snapshotId, mutator, options) =>
      within(timeoutMs, 'save', (isGivenUp) =>
        store.saveSnapshot(snapshotId, (current) => (isGivenUp() ? null : mutator(current)), options),
      ),
    ...(store.onSnapshotStateChange && { onSnapshotStateChange: store.onSnapshotStateChange.bind(store) }),
  };
}

export function isTimeout(error: unknown): boolean {
  return typeof error === 'object' && error !== null && TIMED_OUT in error;
}

const SOON = Promise.resolve();

function within<T>(ms: number, what: string, work: (isGivenUp: () => boolean) => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let isGivenUp = false;
    let isAnswered = false;
    let timer: NodeJS.Timeout | undefined;
    const giveUp = () => {
      isGivenUp = true;
      const error = new GenkitError({
        status: 'DEADLINE_EXCEEDED',
        message: `The session store did not answer a ${what} within ${ms} ms.`,
      });
      reject(Object.assign(error, { [TIMED_OUT]: true }));
    };
    const end = (settle: () => void) => {
      isAnswered = true;
      clearTimeout(timer);
      settle();
    };
    let asked: Promise<T>;
    try {
      asked = work(() => isGivenUp);
    } catch (error) {
      return end(() => reject(error));
    }
    asked.then(
      (answer) => end(() => resolve(answer)),
      (error: Error) => end(() => reject(error)),
    );
    const limit = () => {
      if (!isAnswered) timer = setTimeout(giveUp, ms);
    };
    // A store in memory has answered by then, and a timer would be a good part of what its call takes.
    void SOON.then(limit);
  });
}
