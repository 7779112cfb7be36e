import type { Command } from 'commander';
import type { GenkitOrRegistry } from 'genkitx-agents';
import type { RunLine } from 'genkitx-agents/inspector';
import { Problem } from '../failures.ts';
import type { Io } from '../io.ts';
import { count, time } from '../output/text.ts';
import { loadNamed } from '../stores/open-place.ts';
import type { OpenStore } from '../stores/open-store.ts';
import { importPackage } from '../stores/packages.ts';
import { itemsOf, printItems, printJson, storeCommand, withStore, type StoreFlags } from './with-store.ts';

/** Pause between two reads of a running snapshot, in ms. */
const POLL_MS = 250;

/** `runs ...` */
export function addRuns(program: Command, io: Io): void {
  const runs = program.command('runs').description('lists, aborts and takes over background runs');

  storeCommand(runs, 'list', 'background runs with their owners, leases and attempts').action((flags: StoreFlags) =>
    withStore(io, flags, ['list'], async ({ store, caller }) => {
      const { listRuns } = await importPackage(() => import('genkitx-agents/inspector'));
      const unreadable: string[] = [];
      const list = async (page: { readonly cursor?: string }) => {
        const found = await listRuns(store, { ...caller, ...page });
        unreadable.push(...(found.unreadable ?? []).map(({ sessionId, place }) => sessionId ?? place!));
        return found;
      };
      await printItems(io, flags, openRuns(itemsOf(list)), 'No runs.', [
        { name: 'snapshot', of: ({ snapshotId }) => snapshotId },
        { name: 'session', of: ({ sessionId }) => sessionId },
        { name: 'state', of: ({ state }) => state },
        { name: 'agent', of: ({ agent }) => agent },
        { name: 'worker', of: ({ owner }) => owner },
        { name: 'attempt', of: ({ generation }) => generation },
        { name: 'heartbeat (UTC)', of: ({ heartbeatAt }) => time(heartbeatAt) },
        { name: 'lease until', of: leaseUntil },
      ]);
      if (unreadable.length > 0)
        throw new Problem(
          `The runs of these sessions can't be read, so they are not listed: ${unreadable.join(', ')}.`,
        );
    }),
  );

  storeCommand(runs, 'abort <snapshot>', 'aborts the run of a snapshot; its worker stops').action(
    (snapshotId: string, flags: StoreFlags) =>
      withStore(io, flags, [], async ({ store, caller }) => {
        const { abortRun } = await importPackage(() => import('genkitx-agents'));
        const status = await abortRun(store, snapshotId, caller);
        if (status === 'pending') return io.say(`Aborted: snapshot ${snapshotId}`);
        throw new Problem(
          status === undefined
            ? `The store has no snapshot '${snapshotId}'.`
            : `Snapshot '${snapshotId}' is not running: it is ${status}.`,
        );
      }),
  );

  storeCommand(runs, 'recover', 'takes over the runs of dead processes, and continues them until they end')
    .requiredOption('--app <export>', './app.ts#ai: your Genkit instance, with its agents')
    .action((flags: StoreFlags & { readonly app: string }) =>
      withStore(io, flags, [], async (open) => {
        const ai = (await loadNamed('--app', flags.app, io.folder)) as GenkitOrRegistry;
        const { recoverRuns } = await importPackage(() => import('genkitx-agents'));
        const { runs: recovered } = await recoverRuns(ai, open.caller);
        let failures = 0;
        for (const run of recovered) {
          const status = await ended(io, open, run.snapshotId);
          if (status !== 'completed') failures++;
          if (flags.json) await printJson(io, { ...run, status });
          else await io.print(`${run.agent}  ${run.snapshotId}  attempt ${run.generation}  ${status}\n`);
        }
        const taken = `Taken over: ${count(recovered.length, 'run')}`;
        if (failures > 0) throw new Problem(`${taken}, of which ${failures} did not complete.`);
        io.say(taken);
      }),
    );
}

async function* openRuns(runs: AsyncIterable<RunLine>): AsyncGenerator<RunLine> {
  for await (const run of runs) if (run.state !== 'given-up') yield run;
}

function leaseUntil({ heartbeatAt = '', leaseMs = NaN }: RunLine): string {
  const until = Date.parse(heartbeatAt) + leaseMs;
  return Number.isNaN(until) ? '' : time(new Date(until).toISOString());
}

/** Waits until a run has ended. Returns its status. */
async function ended(io: Io, { store, caller }: OpenStore, snapshotId: string): Promise<string> {
  for (;;) {
    const status = (await store.getSnapshotMetadata({ ...caller, snapshotId }))?.status;
    if (status !== 'pending' && status !== 'expired') return status ?? 'gone';
    io.signal.throwIfAborted();
    io.progress(`Snapshot ${snapshotId} runs`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
