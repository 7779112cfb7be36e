import type { Command } from 'commander';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { count } from '../output/text.ts';
import type { OpenStore } from '../stores/open-store.ts';
import { itemsOf, printJson, storeCommand, type StoreFlags } from './with-store.ts';

/** Options of every command that removes something. */
export interface RemovingFlags extends StoreFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** A command that removes something. */
export function removingCommand(parent: Command, usage: string, description: string): Command {
  return storeCommand(parent, usage, description)
    .option('--dry-run', 'shows what would be removed, and removes nothing')
    .option('-y, --yes', 'does not ask first');
}

/**
 * Asks the person at the terminal whether to continue. With `--yes` it does not ask.
 *
 * @throws WrongUse without a terminal.
 */
export async function isConfirmed(io: Io, { yes }: RemovingFlags, what: string): Promise<boolean> {
  if (yes) return true;
  const answer = await io.ask(`${what} Continue?`);
  if (answer === undefined) throw new WrongUse(`${what} Add --yes: without a terminal the command can't ask.`);
  if (!answer) io.say('Nothing was removed.');
  return answer;
}

/** Prints what would be removed. */
export function printDryRun(io: Io, { json }: RemovingFlags, removed: object, what: string): Promise<void> {
  return json ? printJson(io, { dryRun: true, removed }) : io.print(`Would remove: ${what}\n`);
}

/** Counts of sessions and their snapshots. */
export interface Totals {
  sessions: number;
  snapshots: number;
}

/**
 * Removes sessions, and prints the counts before and after. Asks first. With `--dry-run` it prints what would be removed.
 *
 * @returns What `remove` returns; `undefined` when nothing was removed.
 */
export async function removeSessions<R extends Totals>(
  io: Io,
  flags: RemovingFlags,
  open: OpenStore,
  { planned, remove }: { readonly planned: Totals; readonly remove: () => Promise<R> },
): Promise<R | undefined> {
  const { sessions, snapshots } = planned;
  const what = describe(planned);
  if (flags.dryRun) await printDryRun(io, flags, { sessions, snapshots }, what);
  if (flags.dryRun || !(await isConfirmed(io, flags, `${what} will be removed permanently.`))) return undefined;
  const before = await totalsOf(open);
  const removed = await remove();
  const after = await totalsOf(open);
  if (flags.json) await printJson(io, { before, removed, after });
  else await io.print(`Before:  ${describe(before)}\nRemoved: ${describe(removed)}\nAfter:   ${describe(after)}\n`);
  return removed;
}

async function totalsOf({ store, caller }: OpenStore): Promise<Totals> {
  const totals = { sessions: 0, snapshots: 0 };
  for await (const { snapshotCount } of itemsOf((page) => store.listSessions({ ...caller, ...page }))) {
    totals.sessions++;
    totals.snapshots += snapshotCount;
  }
  return totals;
}

function describe({ sessions, snapshots }: Totals): string {
  return `${count(sessions, 'session')}, ${count(snapshots, 'snapshot')}`;
}
