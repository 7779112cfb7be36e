import { GenkitError } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import { JsonValueError } from '../../json/value.ts';
import type {
  PageOptions,
  ReadRecordsOptions,
  RecordStore,
  ScopeStore,
  SnapshotLookup,
  SnapshotStore,
  WriteRecordOptions,
} from '../../store/contract.ts';
import { statusOf } from '../runtime-error.ts';

/** Pauses before further attempts of a call that failed, in ms. */
const PAUSES_MS = [25, 200];

/** Failures that a further attempt may not have. An error that is not a `GenkitError` counts as `INTERNAL`. */
const TRANSIENT = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'INTERNAL', 'UNKNOWN']);

/**
 * The store as the runtime calls it. Each call has one time budget: within it, a transient failure is retried, and when the budget is used up
 * the call fails with `DEADLINE_EXCEEDED`. A save that timed out writes nothing, unless its commit has already begun. A
 * write of a session record that timed out may still be made, and one whose answer was lost is `ABORTED` when it expects a revision.
 */
export function boundedStore<State>(store: SessionStore<State>, timeoutMs: number): SessionStore<State> {
  const { getSnapshotMetadata, listSessions, listSnapshots, readScopes, readRecords, writeRecord } = store as Partial<
    SnapshotStore<State> & ScopeStore & RecordStore
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
  const records = readRecords &&
    writeRecord && {
      readRecords: (options: ReadRecordsOptions) => within(timeoutMs, 'read', () => readRecords.call(store, options)),
      writeRecord: (options: WriteRecordOptions) => within(timeoutMs, 'write', () => writeRecord.call(store, options)),
    };
  return {
    ...metadata,
    ...lists,
    ...scopes,
    ...records,
    getSnapshot: (lookup) => within(timeoutMs, 'read', () => store.getSnapshot(lookup)),
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

function isTransient(error: unknown): boolean {
  try {
    return !JsonValueError.isInstance(error) && TRANSIENT.has(statusOf(error));
  } catch {
    // A thrown value may throw when it is looked at.
    return false;
  }
}
