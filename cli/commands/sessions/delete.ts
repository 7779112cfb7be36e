import type { Command } from 'commander';
import { Problem } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { removeSessions, removingCommand, type RemovingFlags } from '../removing.ts';
import { itemsOf, withStore } from '../with-store.ts';

/** `sessions delete ID...` */
export function addDelete(parent: Command, io: Io): void {
  removingCommand(parent, 'delete <session...>', 'removes sessions with all their data').action(
    (ids: readonly string[], flags: RemovingFlags) =>
      withStore(io, flags, ['delete', 'list'], async (open) => {
        const { store, caller } = open;
        const planned = { sessions: 0, snapshots: 0 };
        for (const sessionId of new Set(ids)) {
          let snapshots = 0;
          for await (const _ of itemsOf((page) => store.listSnapshots({ ...caller, ...page, sessionId }))) snapshots++;
          if (snapshots === 0) throw new Problem(`The store has no session '${sessionId}'. Nothing was removed.`);
          planned.sessions++;
          planned.snapshots += snapshots;
        }
        const remove = async () => {
          const removed = { sessions: 0, snapshots: 0 };
          for (const sessionId of new Set(ids)) {
            removed.snapshots += (await store.deleteSession({ ...caller, sessionId })).snapshots;
            removed.sessions++;
          }
          return removed;
        };
        await removeSessions(io, flags, open, { planned, remove });
      }),
  );
}
