import type { SnapshotStore } from 'genkitx-agents';

/** The store, and the names of the methods that were called, in order. */
export function counting<T extends SnapshotStore>(store: T): { store: T; calls: string[] } {
  const calls: string[] = [];
  const counted = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        calls.push(String(name));
        return Reflect.apply(value, target, args) as unknown;
      };
    },
  });
  return { store: counted, calls };
}
