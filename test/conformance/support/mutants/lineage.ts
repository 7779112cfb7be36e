import { sessionOf } from '../../../../src/snapshot/snapshot.ts';
import { InMemorySessionStore } from '../../../../stores/in-memory/in-memory-session-store.ts';
import type { SessionSnapshot } from '../../../../src/store/contract.ts';
import { choosing, contentOf, later, reading, replacing, type Mutant } from './mutant.ts';

/** Leaves, parents, sessions, and rewrites. */
export const trees: readonly Mutant[] = [
  {
    fault: 'chooses the leaf with the latest createdAt',
    subject: 'leaf rule',
    make: choosing((leaves) => leaves.reduce(later)),
  },
  {
    fault: 'chooses the leaf that was written last',
    subject: 'leaf rule',
    make: replacing((sound) => {
      const written: string[] = [];
      return {
        getSnapshot: async (lookup) => {
          const leaf = await sound.getSnapshot(lookup);
          if (lookup.sessionId === undefined || !leaf) return leaf;
          const { items } = await sound.listSnapshots({ ...lookup, sessionId: lookup.sessionId, limit: 1000 });
          const isLeaf = (id: string): boolean =>
            items.some((item) => item.snapshotId === id) && items.every((item) => item.parentId !== id);
          const last = written.findLast(isLeaf) ?? leaf.snapshotId;
          return sound.getSnapshot({ snapshotId: last, context: lookup.context });
        },
        saveSnapshot: async (id, mutator, options) => {
          const saved = await sound.saveSnapshot(id, mutator, options);
          if (saved !== null) written.push(saved);
          return saved;
        },
      };
    }),
  },
  {
    fault: 'does not reject branched sessions',
    subject: 'leaf rule',
    make: ({ snapshotPathPrefix }) => new InMemorySessionStore({ snapshotPathPrefix }),
  },
  {
    fault: 'lets a rewrite change parentId and createdAt',
    subject: 'lineage',
    make: reading(() => {
      const said = new Map<string, SessionSnapshot>();
      return {
        note: (saved) => void said.set(saved.snapshotId, saved),
        change: (read) => {
          const { parentId: _, ...rest } = read;
          const { parentId, createdAt } = said.get(read.snapshotId) ?? read;
          return { ...rest, createdAt, ...(parentId !== undefined && { parentId }) };
        },
      };
    }),
  },
  {
    fault: 'drops the session if a rewrite has none',
    subject: 'lineage',
    make: reading(() => {
      const adrift = new Set<string>();
      return {
        note: (saved) =>
          void (sessionOf(saved) === undefined ? adrift.add(saved.snapshotId) : adrift.delete(saved.snapshotId)),
        change: ({ sessionId, ...read }) => (adrift.has(read.snapshotId) || !sessionId ? read : { sessionId, ...read }),
      };
    }),
  },
  {
    fault: 'acknowledges a change of the state of a completed snapshot with children',
    subject: 'rewrites',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, options) => {
        try {
          return await sound.saveSnapshot(id, mutator, options);
        } catch (error) {
          if (error instanceof Error && error.message.includes('has children')) return id!;
          throw error;
        }
      },
    })),
  },
  {
    fault: 'also gives a rewritten state to the children',
    subject: 'rewrites',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, options) => {
        const saved = await sound.saveSnapshot(id, mutator, options);
        const parent = saved === null ? undefined : await sound.getSnapshot({ ...options, snapshotId: saved });
        const sessionId = parent && sessionOf(parent);
        if (!parent || sessionId === undefined) return saved;
        for (const child of await contentOf(sound, sessionId, options)) {
          if (child.parentId !== saved) continue;
          await sound.saveSnapshot(child.snapshotId, (current) => ({ ...current!, state: parent.state }), options);
        }
        return saved;
      },
    })),
  },
];
