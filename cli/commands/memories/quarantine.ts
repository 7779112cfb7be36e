import type { Command } from 'commander';
import type { IngestResult, MemoryScopeId, QuarantinedText } from 'genkitx-agents/memory';
import { explain, Problem } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { importMemory } from '../../stores/packages.ts';
import type { OpenMemories } from '../../stores/open-memories.ts';
import { time } from '../../output/text.ts';
import { removingCommand, type RemovingFlags } from '../removing.ts';
import { itemsOf, printItems, storeCommand } from '../with-store.ts';
import { discardAll, knownIds } from './discard.ts';
import { assertNoOwner, describeScope, mustScope, scoped, scopeIdOf, withMemories, type ScopeFlags } from './scope.ts';

/** Why nothing was learned from an approved text. */
const NOT_LEARNED: Partial<Record<IngestResult['status'], string>> = {
  failed: "learning from it failed. It left the quarantine; 'memories jobs' shows its job.",
  full: 'the queue is full. The text stays in the quarantine; approve it again later.',
  refused: 'the consent of the scope is off. The text stays in the quarantine.',
};

/** `memories quarantine`, `approve` and `discard-text` */
export function addQuarantine(parent: Command, io: Io): void {
  const description = 'the texts that wait for a decision, and why; without --app those of all scopes';
  scoped(storeCommand(parent, 'quarantine', description)).action(async (flags: ScopeFlags) => {
    assertNoOwner(flags);
    await withMemories(io, flags, async (open) => {
      const failures: string[] = [];
      await printItems(io, flags, waitingTexts(flags, open, failures), 'No texts wait for a decision.', [
        // The other commands take the whole id.
        { name: 'id', of: ({ id }) => id, most: Infinity },
        { name: 'kind', of: ({ kind }) => kind },
        { name: 'since (UTC)', of: ({ at }) => time(at) },
        { name: 'scope', of: ({ scope }) => describeScope(scope) },
        { name: 'source', of: ({ sourceId }) => sourceId },
        { name: 'reason', of: ({ reason }) => reason },
        { name: 'text', of: ({ text }) => text },
      ]);
      if (failures.length > 0) throw new Problem(failures.join('\n'));
    });
  });

  scoped(
    storeCommand(
      parent,
      'approve <text...>',
      'accepts texts of the quarantine; a worker of the application learns them',
    ),
  ).action((ids: readonly string[], flags: ScopeFlags) =>
    withMemories(io, flags, async (open) => {
      const { quarantine } = open.manager;
      const scope = await mustScope(flags, open);
      const known = await quarantine.list({ scope });
      const given = knownIds(ids, known, notWaiting);
      for (const id of given) {
        const { status } = await quarantine.approve({ scope, id });
        const why = NOT_LEARNED[status];
        if (why !== undefined) throw new Problem(`Text '${id}': ${why}`);
        io.say(`Approved: text ${id}${status === 'queued' ? '; a worker learns it' : ''}`);
      }
    }),
  );

  const discarding = removingCommand(parent, 'discard-text <text...>', 'removes texts of the quarantine');
  scoped(discarding).action((ids: readonly string[], flags: ScopeFlags & RemovingFlags) =>
    withMemories(io, flags, async (open) => {
      const { quarantine } = open.manager;
      const scope = await mustScope(flags, open);
      await discardAll(io, flags, ids, {
        noun: 'text',
        known: await quarantine.list({ scope }),
        unknown: notWaiting,
        loss: 'nothing will be learned from it.',
        discard: (id) => quarantine.discard({ scope, id }),
      });
    }),
  );
}

function notWaiting(id: string): string {
  return `No text '${id}' of this scope waits for a decision. 'memories quarantine' lists the waiting texts.`;
}

/** @param failures Gets the errors of scopes that can't be read; the others are still read. */
async function* waitingTexts(
  flags: ScopeFlags,
  { manager, caller }: OpenMemories,
  failures: string[],
): AsyncGenerator<QuarantinedText & { readonly scope: MemoryScopeId }> {
  const { memoryScope } = await importMemory();
  const scopes =
    flags.app === undefined ? itemsOf((page) => manager.store.listScopes({ ...caller, ...page })) : [scopeIdOf(flags)];
  for await (const scope of scopes) {
    try {
      const texts = await manager.quarantine.list({ scope: memoryScope(scope, caller.context) });
      for (const text of texts) yield { scope, ...text };
    } catch (error) {
      failures.push(explain(error).message);
    }
  }
}
