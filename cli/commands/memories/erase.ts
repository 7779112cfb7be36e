import type { Command } from 'commander';
import type { MemoryErasure, MemoryScopeId } from 'genkitx-agents/memory';
import type { Io } from '../../io.ts';
import { count } from '../../output/text.ts';
import { isConfirmed, printDryRun, removingCommand, type RemovingFlags } from '../removing.ts';
import { itemsOf, printJson } from '../with-store.ts';
import { describeScope, mustScope, scoped, scopeIdOf, withMemories, type ScopeFlags } from './scope.ts';

/** `memories erase` */
export function addErase(parent: Command, io: Io): void {
  scoped(removingCommand(parent, 'erase', 'removes all data of a scope')).action((flags: ScopeFlags & RemovingFlags) =>
    withMemories(io, flags, async (open) => {
      const { manager, knowsSessions } = open;
      const scope = await mustScope(flags, open);
      const counted = async (): Promise<Counts> => {
        let memories = 0;
        for await (const _ of itemsOf((page) => manager.list({ scope, includeInvalid: true, ...page }))) memories++;
        const [texts, jobs] = await Promise.all([manager.quarantine.list({ scope }), manager.jobs.list({ scope })]);
        return { memories, quarantined: texts.length, jobs: jobs.length };
      };
      if (flags.dryRun) {
        const counts = await counted();
        const what = `${describeCounts(counts)}, and all other data of ${describeScope(scopeIdOf(flags))}`;
        return printDryRun(io, flags, counts, what);
      }
      if (!flags.yes && !(await isConfirmed(io, flags, await describeLoss(scopeIdOf(flags), counted())))) return;
      const erased = await manager.erase({ scope });
      if (flags.json) await printJson(io, erased);
      else await io.print(`Removed: ${describeErasure(erased)}\n`);
      if (!knowsSessions)
        io.say(
          "The sessions that it was learned from are not marked as read: one that continues is learned from again. Remove them as well, or erase again with the manager of your application's module as --store.",
        );
    }),
  );
}

/** What a scope holds. */
interface Counts {
  readonly memories: number;
  readonly quarantined: number;
  readonly jobs: number;
}

/** @throws The error of the count, unless the memories can't be read: erasing needs no key, counting does. */
async function describeLoss(id: MemoryScopeId, counted: Promise<Counts>): Promise<string> {
  const of = `of ${describeScope(id)} will be removed permanently.`;
  try {
    return `${describeCounts(await counted)} ${of}`;
  } catch (error) {
    if ((error as { status?: unknown }).status !== 'FAILED_PRECONDITION') throw error;
    return `All memories ${of} Their number is unknown, because they can't be read.`;
  }
}

function describeErasure({ memories, revisions, notes, jobs }: MemoryErasure): string {
  return [countMemories(memories), count(revisions, 'revision'), count(notes, 'note'), count(jobs, 'job')].join(', ');
}

function describeCounts({ memories, quarantined, jobs }: Counts): string {
  return `${countMemories(memories)}, ${count(quarantined, 'quarantined text')} and ${count(jobs, 'job')}`;
}

function countMemories(memories: number): string {
  return count(memories, 'memory', 'memories');
}
