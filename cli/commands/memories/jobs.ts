import { Option, type Command } from 'commander';
import type { MessageData } from 'genkit';
import type { MemoryJob } from 'genkitx-agents/memory';
import type { Io } from '../../io.ts';
import { count, time } from '../../output/text.ts';
import { removingCommand, type RemovingFlags } from '../removing.ts';
import { printItems, storeCommand, type StoreFlags } from '../with-store.ts';
import { discardAll } from './discard.ts';
import { describeScope, withMemories } from './scope.ts';

/** `memories jobs`, `replay` and `discard` */
export function addJobs(parent: Command, io: Io): void {
  storeCommand(parent, 'jobs', 'the jobs of learning that wait, run, or are dead')
    .addOption(new Option('--state <state>', 'only these').choices(['waiting', 'running', 'dead']))
    .action(({ state, ...flags }: StoreFlags & Partial<Pick<MemoryJob, 'state'>>) =>
      withMemories(io, flags, async ({ manager, caller }) => {
        const jobs = await manager.jobs.list({ ...caller, ...(state && { state }) });
        await printItems(io, flags, jobs, 'No jobs.', [
          { name: 'job', of: ({ id }) => id },
          { name: 'state', of: (job) => job.state },
          { name: 'attempts', of: ({ attempts }) => attempts },
          { name: 'scope', of: ({ scope }) => describeScope(scope) },
          { name: 'source', of: ({ sourceId }) => sourceId },
          { name: 'due (UTC)', of: ({ dueAt }) => time(dueAt) },
          { name: 'error', of: ({ error }) => error },
          { name: 'text', of: textOf },
        ]);
      }),
    );

  storeCommand(parent, 'replay <job...>', 'tries dead jobs again; a worker of the application takes them').action(
    (ids: readonly string[], flags: StoreFlags) =>
      withMemories(io, flags, async ({ manager, caller }) => {
        for (const id of ids) await manager.jobs.replay(id, caller);
        io.say(`Back in the queue: ${count(ids.length, 'job')}. A worker of the application takes them.`);
      }),
  );

  removingCommand(parent, 'discard <job...>', 'removes dead jobs; their messages are not learned later').action(
    (ids: readonly string[], flags: RemovingFlags) =>
      withMemories(io, flags, async ({ manager, caller }) => {
        await discardAll(io, flags, ids, {
          noun: 'job',
          known: await manager.jobs.list({ ...caller, state: 'dead' }),
          unknown: (id) => `There is no dead job '${id}'. 'memories jobs --state dead' shows them.`,
          loss: 'the messages will not be learned.',
          discard: (id) => manager.jobs.discard(id, caller),
        });
      }),
  );
}

/** The beginning of the text that a job learns from. A job of another version of the package may have other members. */
function textOf({ input }: MemoryJob): string {
  const { messages, facts } = (input ?? {}) as { messages?: MessageData[]; facts?: { text?: string }[] };
  const parts = messages?.flatMap(({ content }) => content) ?? facts ?? [];
  // A table shows less; the text of a job may be long.
  return parts
    .map(({ text }) => text ?? '')
    .join(' ')
    .slice(0, 500);
}
