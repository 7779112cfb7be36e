import { Option, type Command } from 'commander';
import type { MemoryJob } from 'genkitx-agents/memory';
import { Problem } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { count, time } from '../../output/text.ts';
import { isConfirmed, printForeseen, removingCommand, type RemovingFlags } from '../removing.ts';
import { printItems, printJson, storeCommand, type StoreFlags } from '../with-store.ts';
import { describeScope, withMemories } from './scope.ts';

/** `memories jobs`, `replay` and `discard` */
export function addJobs(parent: Command, io: Io): void {
  storeCommand(parent, 'jobs', 'what waits to be learned from, runs, or has failed for good')
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
        ]);
      }),
    );

  storeCommand(parent, 'replay <job...>', 'tries dead jobs again; a worker of the application takes them').action(
    (ids: readonly string[], flags: StoreFlags) =>
      withMemories(io, flags, async ({ manager, caller }) => {
        for (const id of ids) await manager.jobs.replay(id, caller);
        io.say(`Waiting again: ${count(ids.length, 'job')}`);
      }),
  );

  removingCommand(parent, 'discard <job...>', 'removes dead jobs; their messages are not learned later').action(
    (given: readonly string[], flags: RemovingFlags) =>
      withMemories(io, flags, async ({ manager, caller }) => {
        const ids = [...new Set(given)];
        const dead = await manager.jobs.list({ ...caller, state: 'dead' });
        const unknown = ids.find((id) => dead.every((job) => job.id !== id));
        if (unknown !== undefined)
          throw new Problem(`There is no dead job '${unknown}'. 'memories jobs --state dead' shows them.`);
        const jobs = ids.length;
        const what = count(jobs, 'job');
        if (flags.dryRun) return printForeseen(io, flags, { jobs }, what);
        if (!(await isConfirmed(io, flags, `${what} will be removed for good; the messages will not be learned.`)))
          return;
        for (const id of ids) await manager.jobs.discard(id, caller);
        if (flags.json) await printJson(io, { jobs });
        else await io.print(`Removed: ${what}\n`);
      }),
  );
}
