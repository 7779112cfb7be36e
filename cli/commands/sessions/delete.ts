import type { Command } from 'commander';
import { Problem } from '../../failures.ts';
import type { Io } from '../../io.ts';
import {
  describeTotals,
  isConfirmed,
  printForeseen,
  printRemoved,
  removingCommand,
  totalsOf,
  type RemovingFlags,
} from '../removing.ts';
import { itemsOf, withStore } from '../with-store.ts';

/** `sessions delete ID...` */
export function addDelete(parent: Command, io: Io): void {
  removingCommand(parent, 'delete <session...>', 'removes sessions with everything that belongs to them').action(
    (ids: readonly string[], flags: RemovingFlags) =>
      withStore(io, flags, ['delete', 'list'], async (open) => {
        const { store, caller } = open;
        const asked = { sessions: 0, snapshots: 0 };
        for (const sessionId of new Set(ids)) {
          let snapshots = 0;
          for await (const _ of itemsOf((page) => store.listSnapshots({ ...caller, ...page, sessionId }))) snapshots++;
          if (snapshots === 0) throw new Problem(`The store has no session '${sessionId}'. Nothing was removed.`);
          asked.sessions++;
          asked.snapshots += snapshots;
        }
        if (flags.dryRun) return printForeseen(io, flags, asked);
        if (!(await isConfirmed(io, flags, `${describeTotals(asked)} will be removed for good.`))) return;
        const before = await totalsOf(open);
        const removed = { sessions: 0, snapshots: 0 };
        for (const sessionId of new Set(ids)) {
          removed.snapshots += (await store.deleteSession({ ...caller, sessionId })).snapshots;
          removed.sessions++;
        }
        await printRemoved(io, flags, { before, removed, after: await totalsOf(open) });
      }),
  );
}
