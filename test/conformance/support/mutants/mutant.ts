import type {
  RecordStore,
  ScopeStore,
  SessionSnapshot,
  SessionSnapshotInput,
  SessionStoreOptions,
  SnapshotMetadata,
  SnapshotMutator,
  SnapshotStore,
} from '../../../../src/store/contract.ts';
import {
  InMemorySessionStore,
  type InMemorySessionStoreOptions,
} from '../../../../stores/in-memory/in-memory-session-store.ts';

/** A faulty store: its fault, the subject that must catch it, and a function that makes it. */
export interface Mutant {
  fault: string;
  subject: string;
  make(options: InMemorySessionStoreOptions): SnapshotStore;
}

export type Methods = Omit<SnapshotStore, 'capabilities'> & ScopeStore & RecordStore;
export type News = (snapshot: SessionSnapshot) => void;

/** Replaces methods of a correct store. `replace` gets the original methods. */
export function replacing(replace: (sound: Methods) => Partial<Methods>): Mutant['make'] {
  return (options) => {
    const store: SnapshotStore & ScopeStore & RecordStore = new InMemorySessionStore(options);
    const sound: Methods = {
      getSnapshot: store.getSnapshot.bind(store),
      getSnapshotMetadata: store.getSnapshotMetadata.bind(store),
      saveSnapshot: store.saveSnapshot.bind(store),
      onSnapshotStateChange: store.onSnapshotStateChange.bind(store),
      listSnapshots: store.listSnapshots.bind(store),
      listSessions: store.listSessions.bind(store),
      deleteSession: store.deleteSession.bind(store),
      prune: store.prune.bind(store),
      readScopes: store.readScopes.bind(store),
      deleteScope: store.deleteScope.bind(store),
      listScopes: store.listScopes.bind(store),
      readRecords: store.readRecords.bind(store),
      writeRecord: store.writeRecord.bind(store),
      close: store.close.bind(store),
    };
    return Object.assign(store, replace(sound));
  };
}

/** Returns the options of a call without one of them. */
export function without<T extends object>(options: T | undefined, name: keyof T): T {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([key]) => key !== name)) as T;
}

/** Changes each result of a mutator before the store gets it. */
export function answering(
  change: (answer: SessionSnapshotInput, current?: SessionSnapshot) => SessionSnapshotInput,
): Mutant['make'] {
  return replacing((sound) => ({
    saveSnapshot: (id, mutator, options) => {
      const changed: SnapshotMutator = (current) => {
        const answer = mutator(current);
        return answer === null ? null : change(answer, current);
      };
      return sound.saveSnapshot(id, changed, options);
    },
  }));
}

/** Changes each snapshot that is read; `note` is called for each saved snapshot. */
export function reading(
  make: () => { note: News; change: (read: SessionSnapshot) => SessionSnapshot },
): Mutant['make'] {
  return replacing((sound) => {
    const { note, change } = make();
    return {
      getSnapshot: async (lookup) => {
        const read = await sound.getSnapshot(lookup);
        return read && change(read);
      },
      saveSnapshot: async (id, mutator, options) => {
        let answered: SessionSnapshotInput | null = null;
        const saved = await sound.saveSnapshot(id, (current) => (answered = mutator(current)), options);
        if (saved !== null) note({ ...answered!, snapshotId: saved });
        return saved;
      },
    };
  });
}

/** Delivers to a watcher only the notifications that `deliver` passes on. */
export function delivering(deliver: (callback: News) => News): Mutant['make'] {
  return replacing((sound) => ({
    onSnapshotStateChange: (id, callback, options) => sound.onSnapshotStateChange(id, deliver(callback), options),
  }));
}

/** Chooses the leaf in its own way. */
export function choosing(choose: (leaves: SnapshotMetadata[]) => SnapshotMetadata | undefined): Mutant['make'] {
  return replacing((sound) => ({
    getSnapshot: async ({ sessionId, context, ...lookup }) => {
      const leaf = await sound.getSnapshot({ ...lookup, ...(sessionId !== undefined && { sessionId }), context });
      if (sessionId === undefined || !leaf) return leaf;
      const { items } = await sound.listSnapshots({ sessionId, context, limit: 1000 });
      const leaves = items.filter((item) => items.every((other) => other.parentId !== item.snapshotId));
      const chosen = choose(leaves) ?? leaf;
      return sound.getSnapshot({ snapshotId: chosen.snapshotId, context });
    },
  }));
}

export function later(x: SnapshotMetadata, y: SnapshotMetadata): SnapshotMetadata {
  return y.createdAt > x.createdAt ? y : x;
}

/** Returns all stored snapshots of a session, in order. */
export async function contentOf(
  sound: Methods,
  sessionId: string,
  options?: SessionStoreOptions,
): Promise<SessionSnapshot[]> {
  const caller = { context: options?.context };
  const { items } = await sound.listSnapshots({ ...caller, sessionId, limit: 1000 });
  const snapshots = await Promise.all(items.map(({ snapshotId }) => sound.getSnapshot({ ...caller, snapshotId })));
  return snapshots.filter((snapshot) => snapshot !== undefined);
}

export const underTenant = (change: (tenant: string) => string): Mutant['make'] => {
  return ({ snapshotPathPrefix, ...options }) => {
    if (!snapshotPathPrefix) return new InMemorySessionStore(options);
    const prefix = (call?: SessionStoreOptions): string => {
      const tenant = snapshotPathPrefix(call);
      return typeof tenant === 'string' ? change(tenant) : tenant;
    };
    return new InMemorySessionStore({ ...options, snapshotPathPrefix: prefix });
  };
};
