import type { ScopeStore, SnapshotStore } from 'genkitx-agents';

/** A wrapper of a store: `around` gets each call and makes it, or does something else. */
export function storeAround(
  inner: SnapshotStore,
  around: (name: string, args: readonly unknown[], call: () => unknown) => unknown,
): SnapshotStore & ScopeStore {
  return new Proxy(inner as SnapshotStore & ScopeStore, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]): unknown => around(String(name), args, () => member.apply(target, args));
    },
  });
}

/** The counts of a store's reads and changes. */
export interface Counts {
  /** Reads of snapshots. */
  snapshots: number;
  /** Records read. */
  records: number;
  /** Records that saves change. */
  scoped: number;
}

/** A store that delegates and counts. */
export function countingStore(inner: SnapshotStore): { store: SnapshotStore; counts: Counts } {
  const counts: Counts = { snapshots: 0, records: 0, scoped: 0 };
  const store = storeAround(inner, (name, args, make) => {
    if (name === 'getSnapshot') counts.snapshots++;
    if (name === 'readScopes') counts.records += (args[0] as { scopes: unknown[] }).scopes.length;
    if (name === 'saveSnapshot') counts.scoped += (args[2] as { scopes?: unknown[] })?.scopes?.length ?? 0;
    return make();
  });
  return { store, counts };
}
