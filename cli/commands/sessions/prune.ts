import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { PrunePolicy } from 'genkitx-agents';
import { Problem, WrongUse } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { count } from '../../output/text.ts';
import { importPackage } from '../../stores/packages.ts';
import { parseCount, parseDuration } from '../numbers.ts';
import { removeSessions, removingCommand, type RemovingFlags } from '../removing.ts';
import { withStore } from '../with-store.ts';

interface PolicyFlags extends RemovingFlags {
  readonly idle?: number;
  readonly maxAge?: number;
  readonly maxChain?: number;
}

interface RetainFlags extends PolicyFlags {
  readonly archive?: string;
}

/** `sessions prune` and `sessions retain` */
export function addPrune(parent: Command, io: Io): void {
  policyCommand(parent, 'prune', 'removes old sessions and snapshots, and orphans').action((flags: PolicyFlags) =>
    withStore(io, flags, ['prune', 'list'], async (open) => {
      const { store, caller } = open;
      const policy = policyOf(flags);
      await removeSessions(io, flags, open, {
        planned: await store.prune(policy, { ...caller, dryRun: true }),
        remove: () => store.prune(policy, caller),
      });
    }),
  );
  policyCommand(parent, 'retain', 'as prune, session by session: can archive them, and keeps sessions on hold')
    .option('--archive <directory>', 'writes each session there before it is removed, as JSON Lines')
    .action((flags: RetainFlags) =>
      withStore(io, flags, ['prune', 'list', 'delete', 'compareLeaf'], async (open) => {
        const { store, caller } = open;
        const policy = policyOf(flags);
        const { applyRetention, archiveToDirectory } = await importPackage(() => import('genkitx-agents/privacy'));
        const options = {
          contexts: [caller.context],
          onProgress: ({ seen, sessions }: { seen: number; sessions: number }) =>
            io.progress(`${count(seen, 'session')} checked, ${sessions} removed`),
          signal: io.signal,
        };
        const archive = flags.archive === undefined ? undefined : archiveToDirectory(resolve(io.folder, flags.archive));
        const removed = await removeSessions(io, flags, open, {
          planned: await applyRetention(store, policy, { ...options, dryRun: true }),
          remove: () => applyRetention(store, policy, { ...options, ...(archive && { archive }) }),
        });
        if (!removed) return;
        if (removed.held > 0) io.say(`On hold, and not removed: ${count(removed.held, 'session')}.`);
        if (removed.failed > 0) {
          throw new Problem(
            `${count(removed.failed, 'session')} could not be archived, read or removed; run it again.`,
          );
        }
      }),
    );
}

function policyCommand(parent: Command, usage: string, description: string): Command {
  return removingCommand(parent, usage, description)
    .option('--idle <duration>', 'whole sessions without a write for this long, for example 90d', parseDuration)
    .option(
      '--max-age <duration>',
      'older snapshots, except leaves and those that a session continues from',
      parseDuration,
    )
    .option(
      '--max-chain <count>',
      'on every path to a leaf, all snapshots except the newest <count> and those that a session continues from',
      parseCount,
    );
}

function policyOf({ idle: idleMs, maxAge: maxAgeMs, maxChain: maxChainLength }: PolicyFlags): PrunePolicy {
  const policy = {
    ...(idleMs !== undefined && { idleMs }),
    ...(maxAgeMs !== undefined && { maxAgeMs }),
    ...(maxChainLength !== undefined && { maxChainLength }),
  };
  if (Object.keys(policy).length > 0) return policy;
  throw new WrongUse('Say what to remove: --idle, --max-age or --max-chain.');
}
