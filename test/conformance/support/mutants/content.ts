import { posix } from 'node:path';
import type { SessionSnapshot, SessionSnapshotInput } from '../../../../src/store/contract.ts';
import { answering, reading, replacing, underTenant, type Mutant } from './mutant.ts';

/** Values, errors, aliasing, ids and tenants. */
export const contents: readonly Mutant[] = [
  {
    fault: 'saves the result of JSON.stringify',
    subject: 'values',
    make: answering((answer) => JSON.parse(JSON.stringify(answer)) as SessionSnapshotInput),
  },
  {
    fault: 'copies members by plain assignment',
    subject: 'values',
    make: reading(() => ({ note: () => {}, change: (read) => assigned(read) as SessionSnapshot })),
  },
  {
    fault: 'drops unknown fields',
    subject: 'values',
    make: answering((answer) => {
      const { snapshotId, sessionId, parentId, createdAt, updatedAt, status, state, error, heartbeatAt } = answer ?? {};
      return { snapshotId, sessionId, parentId, createdAt, updatedAt, status, state, error, heartbeatAt };
    }),
  },
  {
    fault: 'writes the metadata before it refuses the state',
    subject: 'values',
    make: replacing((sound) => ({
      saveSnapshot: async (id, mutator, options) => {
        let answered: SessionSnapshotInput | null = null;
        try {
          return await sound.saveSnapshot(id, (current) => (answered = mutator(current)), options);
        } catch (error) {
          const written = answered as SessionSnapshotInput | null;
          const { sessionId, parentId, status, createdAt } = written ?? {};
          const bare = {
            ...(sessionId && { sessionId }),
            ...(parentId && { parentId }),
            status,
            createdAt: createdAt!,
          };
          if (written?.state) await sound.saveSnapshot(id, (current) => current ?? bare, options).catch(() => {});
          throw error;
        }
      },
    })),
  },
  {
    fault: 'throws plain errors',
    subject: 'lookups and errors',
    make: replacing((sound) => ({
      getSnapshot: (lookup) =>
        sound.getSnapshot(lookup).catch((error: unknown) => {
          throw new Error(String(error));
        }),
    })),
  },
  {
    fault: 'has a path of the server in its errors',
    subject: 'lookups and errors',
    make: replacing((sound) => ({
      getSnapshot: (lookup) =>
        sound.getSnapshot(lookup).catch((error: unknown) => {
          if (error instanceof Error) error.message += ' (/srv/data/snapshots/x.json)';
          throw error;
        }),
    })),
  },
  {
    fault: 'returns the same object to every reader',
    subject: 'aliasing',
    make: replacing((sound) => {
      const read = new Map<string, SessionSnapshot>();
      return {
        getSnapshot: async (lookup) => {
          const fresh = await sound.getSnapshot(lookup);
          if (fresh && !read.has(fresh.snapshotId)) read.set(fresh.snapshotId, fresh);
          return fresh && read.get(fresh.snapshotId);
        },
        saveSnapshot: (id, mutator, options) => {
          read.clear();
          return sound.saveSnapshot(id, mutator, options);
        },
        deleteSession: (options) => {
          read.clear();
          return sound.deleteSession(options);
        },
      };
    }),
  },
  {
    fault: 'returns its own object for a frozen read, and does not freeze it',
    subject: 'aliasing',
    make: replacing((sound) => {
      const kept = new Map<string, SessionSnapshot>();
      return {
        getSnapshot: async (lookup) => {
          const fresh = await sound.getSnapshot({ ...lookup, frozen: false });
          if (!fresh) return undefined;
          const own = kept.get(fresh.snapshotId) ?? fresh;
          kept.set(own.snapshotId, own);
          return lookup.frozen ? own : structuredClone(own);
        },
        saveSnapshot: (id, mutator, options) => {
          kept.clear();
          return sound.saveSnapshot(id, mutator, options);
        },
      };
    }),
  },
  {
    fault: 'keeps the caller’s object',
    subject: 'aliasing',
    make: reading(() => {
      const given = new Map<string, SessionSnapshot['state']>();
      return {
        note: (saved) => void given.set(saved.snapshotId, saved.state),
        change: (read) => ({ ...read, ...(read.state && { state: structuredClone(given.get(read.snapshotId)) }) }),
      };
    }),
  },
];

export const names: readonly Mutant[] = [
  {
    fault: 'treats ids in different Unicode forms as one',
    subject: 'ids',
    make: replacing((sound) => ({
      getSnapshot: (lookup) => sound.getSnapshot(normalised(lookup)),
      saveSnapshot: (id, mutator, options) => sound.saveSnapshot(id?.normalize(), mutator, options),
    })),
  },
  { fault: 'ignores the case of tenants', subject: 'tenants', make: underTenant((tenant) => tenant.toLowerCase()) },
  { fault: 'resolves dots in a tenant', subject: 'tenants', make: underTenant((tenant) => posix.normalize(tenant)) },
];

function assigned(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(assigned);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) copy[key] = assigned((value as Record<string, unknown>)[key]);
  return copy;
}

function normalised<T extends { snapshotId?: string }>(lookup: T): T {
  return typeof lookup.snapshotId === 'string' ? { ...lookup, snapshotId: lookup.snapshotId.normalize() } : lookup;
}
