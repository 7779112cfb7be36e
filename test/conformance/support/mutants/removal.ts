import { contentOf, replacing, without, type Mutant } from './mutant.ts';

/** Lists, deleting, pruning, closing. */
export const removals: readonly Mutant[] = [
  {
    fault: 'loses an item between two pages',
    subject: 'lists',
    make: replacing((sound) => ({
      listSnapshots: async (options) => {
        const page = await sound.listSnapshots(options);
        return options.cursor === undefined ? page : { ...page, items: page.items.slice(1) };
      },
    })),
  },
  {
    fault: 'lists by createdAt',
    subject: 'lists',
    make: replacing((sound) => ({
      listSnapshots: async (options) => {
        const page = await sound.listSnapshots(options);
        return { ...page, items: page.items.toSorted((x, y) => (x.createdAt < y.createdAt ? -1 : 1)) };
      },
    })),
  },
  {
    fault: 'lets a later save change the owner',
    subject: 'lists',
    make: replacing((sound) => {
      const owners = new Map<string, string>();
      return {
        saveSnapshot: async (id, mutator, options) => {
          const saved = await sound.saveSnapshot(id, mutator, options);
          const read = saved === null ? undefined : await sound.getSnapshot({ ...options, snapshotId: saved });
          if (read?.sessionId && options?.session?.ownerId) owners.set(read.sessionId, options.session.ownerId);
          return saved;
        },
        listSessions: async (options) => {
          const page = await sound.listSessions(options);
          const items = page.items.map((item) => ({ ...item, ownerId: owners.get(item.sessionId) }));
          return { ...page, items };
        },
      };
    }),
  },
  {
    fault: 'lists the sessions of every owner',
    subject: 'lists',
    make: replacing((sound) => ({
      listSessions: (options = {}) => sound.listSessions({ ...options, ownerId: undefined }),
    })),
  },
  {
    fault: 'does not compare the leaf that a deletion expects',
    subject: 'deleting and pruning',
    make: replacing((sound) => ({
      deleteSession: (options) => sound.deleteSession(without(options, 'expectedLeafId')),
    })),
  },
  {
    fault: 'leaves one snapshot of a deleted session behind',
    subject: 'deleting and pruning',
    make: replacing((sound) => ({
      deleteSession: async (options) => {
        const [first] = await contentOf(sound, options.sessionId, options);
        const result = await sound.deleteSession(options);
        if (first) await sound.saveSnapshot(first.snapshotId, () => first, options);
        return result;
      },
    })),
  },
  {
    fault: 'prunes in a dry run',
    subject: 'deleting and pruning',
    make: replacing((sound) => ({
      prune: async (policy, options) => ({
        ...(await sound.prune(policy, { ...options, dryRun: false })),
        dryRun: options?.dryRun ?? false,
      }),
    })),
  },
  {
    fault: 'prunes snapshots that only another branch needs',
    subject: 'deleting and pruning',
    make: replacing((sound) => ({
      prune: async (policy, options) => {
        const result = await sound.prune(policy, options);
        if (policy.maxChainLength === undefined || options?.dryRun) return result;
        for (const { sessionId } of (await sound.listSessions(options)).items) {
          const content = await contentOf(sound, sessionId, options);
          const line = new Set<string | undefined>();
          for (let at = content.at(-1); at; at = content.find(({ snapshotId }) => snapshotId === at?.parentId)) {
            line.add(at.snapshotId);
          }
          await sound.deleteSession({ ...options, sessionId });
          for (const kept of content.filter(({ snapshotId }) => line.has(snapshotId))) {
            await sound.saveSnapshot(kept.snapshotId, () => kept, options);
          }
        }
        return result;
      },
    })),
  },
  {
    fault: 'prunes the completed snapshot before a failed turn',
    subject: 'deleting and pruning',
    make: replacing((sound) => ({
      prune: async (policy, options) => {
        const result = await sound.prune(policy, options);
        if (policy.maxChainLength === undefined || options?.dryRun) return result;
        for (const { sessionId } of (await sound.listSessions(options)).items) {
          const content = await contentOf(sound, sessionId, options);
          if (content.at(-1)?.status !== 'failed') continue;
          await sound.deleteSession({ ...options, sessionId });
          for (const kept of content.filter(({ status }) => status !== 'completed')) {
            await sound.saveSnapshot(kept.snapshotId, () => kept, options);
          }
        }
        return result;
      },
    })),
  },
  {
    fault: 'accepts calls after it was closed',
    subject: 'reopening and closing',
    make: replacing(() => ({ close: async () => {} })),
  },
];
