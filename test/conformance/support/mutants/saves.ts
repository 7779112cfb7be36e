import { sessionOf } from '../../../../src/snapshot/snapshot.ts';
import type { SnapshotMutator, SnapshotStatus } from '../../../../src/store/contract.ts';
import { replacing, without, type Mutant } from './mutant.ts';

/** Statuses and atomic saves. */
export const terminals: readonly Mutant[] = [
  {
    fault: 'overwrites a terminal status',
    subject: 'terminal statuses',
    make: replacing((sound) => {
      const overwritten = new Map<string, SnapshotStatus>();
      return {
        getSnapshot: async (lookup) => {
          const read = await sound.getSnapshot(lookup);
          const status = read && overwritten.get(read.snapshotId);
          return status ? { ...read, status } : read;
        },
        saveSnapshot: (id, mutator, options) =>
          sound.saveSnapshot(
            id,
            (current) => {
              const answer = mutator(current);
              if (!answer?.status || !current || !['completed', 'failed', 'aborted'].includes(current.status!))
                return answer;
              overwritten.set(current.snapshotId, answer.status);
              return { ...answer, status: current.status };
            },
            options,
          ),
      };
    }),
  },
  {
    fault: 'reads, waits, and writes a result of the outdated read',
    subject: 'atomic saves',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, options) => {
        const current = id === undefined ? undefined : await sound.getSnapshot({ ...options, snapshotId: id });
        const answer = mutator(current);
        return answer === null ? null : sound.saveSnapshot(id, () => answer, options);
      },
    })),
  },
  {
    fault: 'lets two sessions create the same id at once',
    subject: 'atomic saves',
    make: replacing((sound) => {
      const starting = new Set<string>();
      return {
        saveSnapshot: async (id, mutator, options) => {
          if (id === undefined) return sound.saveSnapshot(id, mutator, options);
          const isRace = starting.has(id);
          starting.add(id);
          try {
            await new Promise(setImmediate);
            return await sound.saveSnapshot(id, mutator, options).catch((error: unknown) => {
              if (isRace) return id;
              throw error;
            });
          } finally {
            starting.delete(id);
          }
        },
      };
    }),
  },
  {
    fault: 'compares the expected leaf before it waits for its turn',
    subject: 'conditional saves',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, { expectedLeafId, ...options } = {}) => {
        let session: string | undefined;
        const ask: SnapshotMutator = (current) => {
          const answer = mutator(current);
          session = answer ? sessionOf(answer) : undefined;
          return null;
        };
        if (expectedLeafId === undefined) return sound.saveSnapshot(id, mutator, options);
        await sound.saveSnapshot(id, ask, options);
        const leaf = session === undefined ? undefined : await sound.getSnapshot({ ...options, sessionId: session });
        const isStale = session === undefined || (leaf?.snapshotId ?? null) !== expectedLeafId;
        return sound.saveSnapshot(id, mutator, isStale ? { ...options, expectedLeafId } : options);
      },
    })),
  },
  {
    fault: 'does not compare the expected leaf',
    subject: 'conditional saves',
    make: replacing((sound) => ({
      saveSnapshot: (id, mutator, options) => sound.saveSnapshot(id, mutator, without(options, 'expectedLeafId')),
    })),
  },
  {
    fault: 'saves for removed snapshots',
    subject: 'conditional saves',
    make: replacing((sound) => ({
      saveSnapshot: (id, mutator, options) => sound.saveSnapshot(id, mutator, without(options, 'ifSnapshot')),
    })),
  },
];
