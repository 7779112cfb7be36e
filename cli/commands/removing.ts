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
    .option('--dry-run', 'says what would be removed, and removes nothing')
    .option('-y, --yes', 'does not ask first');
}

/**
 * Asks the person at the terminal whether to go on. With `--yes` it does not ask.
 *
 * @throws WrongUse without a terminal.
 */
export async function isConfirmed(io: Io, { yes }: RemovingFlags, what: string): Promise<boolean> {
  if (yes) return true;
  const answer = await io.ask(`${what} Go on?`);
  if (answer === undefined) throw new WrongUse(`${what} Add --yes: there is no terminal to ask at.`);
  if (!answer) io.say('Nothing was removed.');
  return answer;
}

/** Counts of a tenant's data. */
export interface Totals {
  sessions: number;
  snapshots: number;
}

export async function totalsOf({ store, caller }: OpenStore): Promise<Totals> {
  const totals = { sessions: 0, snapshots: 0 };
  for await (const { snapshotCount } of itemsOf((page) => store.listSessions({ ...caller, ...page }))) {
    totals.sessions++;
    totals.snapshots += snapshotCount;
  }
  return totals;
}

export function describeTotals({ sessions, snapshots }: Totals): string {
  return `${count(sessions, 'session')}, ${count(snapshots, 'snapshot')}`;
}

/** Prints what would be removed. */
export async function printForeseen(io: Io, { json }: RemovingFlags, { sessions, snapshots }: Totals): Promise<void> {
  if (json) await printJson(io, { dryRun: true, removed: { sessions, snapshots } });
  else await io.print(`Would remove: ${describeTotals({ sessions, snapshots })}\n`);
}

/** Prints the counts before and after a removal. */
export async function printRemoved(
  io: Io,
  { json }: RemovingFlags,
  removal: { readonly before: Totals; readonly removed: Totals; readonly after: Totals },
): Promise<void> {
  if (json) return printJson(io, removal);
  const { before, removed, after } = removal;
  await io.print(
    `Before:  ${describeTotals(before)}\nRemoved: ${describeTotals(removed)}\nAfter:   ${describeTotals(after)}\n`,
  );
}
