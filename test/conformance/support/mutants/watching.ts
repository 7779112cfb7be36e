import type { SessionSnapshot } from '../../../../src/store/contract.ts';
import { replacing, delivering, type Mutant, type News } from './mutant.ts';

/** Watchers. */
export const watching: readonly Mutant[] = [
  {
    fault: 'notifies a watcher while it subscribes',
    subject: 'watchers',
    make: replacing((sound) => {
      const saved = new Map<string, SessionSnapshot>();
      return {
        saveSnapshot: async (id, mutator, options) => {
          const done = await sound.saveSnapshot(id, mutator, options);
          const now = done === null ? undefined : await sound.getSnapshot({ ...options, snapshotId: done });
          if (now) saved.set(now.snapshotId, now);
          return done;
        },
        onSnapshotStateChange: (id, callback, options) => {
          const now = saved.get(id);
          if (now) callback(structuredClone(now));
          return sound.onSnapshotStateChange(id, callback, options);
        },
      };
    }),
  },
  {
    fault: 'does not deliver the current snapshot to a new watcher',
    subject: 'watchers',
    make: replacing((sound) => {
      const there = new Set<string>();
      return {
        saveSnapshot: async (id, mutator, options) => {
          const saved = await sound.saveSnapshot(id, mutator, options);
          if (saved !== null) there.add(saved);
          return saved;
        },
        onSnapshotStateChange: (id, callback, options) => {
          let skip = there.has(id);
          const deliverLater: News = (news) => {
            if (!skip) callback(news);
            skip = false;
          };
          return sound.onSnapshotStateChange(id, deliverLater, options);
        },
      };
    }),
  },
  {
    fault: 'delivers every notification twice',
    subject: 'watchers',
    make: delivering((callback) => (news) => {
      callback(structuredClone(news));
      callback(news);
    }),
  },
  {
    fault: 'delivers only the last of several statuses',
    subject: 'watchers',
    make: delivering((callback) => {
      let waiting: SessionSnapshot | undefined;
      const tellLast = (): void => {
        const last = waiting!;
        waiting = undefined;
        try {
          callback(last);
        } catch {
          // A throwing listener is tested by another fault.
        }
      };
      return (news) => {
        if (!waiting) setImmediate(tellLast);
        waiting = news;
      };
    }),
  },
  {
    fault: 'notifies an ended watcher',
    subject: 'watchers',
    make: replacing((sound) => ({
      onSnapshotStateChange: (id, callback, options) => {
        sound.onSnapshotStateChange(id, callback, options);
        return () => {};
      },
    })),
  },
  {
    fault: 'skips the watcher after one that ends',
    subject: 'watchers',
    make: replacing((sound) => {
      const rows = new Map<string, News[]>();
      return {
        onSnapshotStateChange: (id, callback, options) => {
          const row = rows.get(id) ?? [];
          rows.set(id, row);
          row.push(callback);
          const end = sound.onSnapshotStateChange(
            id,
            (news) => {
              // One subscription is used for all watchers of the row.
              if (row[0] === callback) for (let i = 0; i < row.length; i++) row[i]!(news);
            },
            options,
          );
          return () => {
            if (row.includes(callback)) row.splice(row.indexOf(callback), 1);
            if (row.length === 0) end();
          };
        },
      };
    }),
  },
  {
    fault: 'fails the save when a watcher throws',
    subject: 'watchers',
    make: replacing((sound) => {
      let thrown: unknown;
      return {
        onSnapshotStateChange: (id, callback, options) =>
          sound.onSnapshotStateChange(
            id,
            (news) => {
              try {
                callback(news);
              } catch (error) {
                thrown = error;
              }
            },
            options,
          ),
        saveSnapshot: async (id, mutator, options) => {
          const saved = await sound.saveSnapshot(id, mutator, options);
          await new Promise((resolve) => setImmediate(resolve));
          await new Promise((resolve) => setImmediate(resolve));
          if (thrown !== undefined) throw thrown;
          return saved;
        },
      };
    }),
  },
];
