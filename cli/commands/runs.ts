import type { Command } from 'commander';
import type { GenkitOrRegistry, SnapshotMetadata } from 'genkitx-agents';
import { Problem, WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { table } from '../output/table.ts';
import { count, time } from '../output/text.ts';
import { loadExport } from '../stores/load-module.ts';
import { importPackage, parseStoreUrl, type OpenStore } from '../stores/open-store.ts';
import { itemsOf, printJson, storeCommand, withStore, type StoreFlags } from './with-store.ts';

/** The lease of Genkit's own background runs, in ms. It is not stored in them. */
const GENKIT_LEASE_MS = 60_000;
/** Pause between two reads of a running snapshot, in ms. */
const LOOK_MS = 250;

/** A background run, as its running snapshot describes it. */
interface Run {
  readonly sessionId: string;
  readonly snapshotId: string;
  readonly agent?: string;
  /** The worker. */
  readonly owner?: string;
  /** 1, and one more for each takeover. */
  readonly attempt?: number;
  readonly heartbeatAt?: string;
  /**
   * `running`: its owner renews the lease. `expired`: the lease ran out. `released`: its owner handed it over, and no worker has taken it.
   * `waiting`: no worker has begun it.
   */
  readonly state: 'running' | 'expired' | 'released' | 'waiting';
  readonly leaseUntil?: string;
}

/** `runs ...` */
export function addRuns(program: Command, io: Io): void {
  const runs = program.command('runs').description('lists, aborts and takes over background runs');

  storeCommand(runs, 'list', 'background runs with their owners, leases and attempts').action((flags: StoreFlags) =>
    withStore(io, flags, ['list'], async (open) => {
      const found: Run[] = [];
      for await (const run of runsIn(open)) {
        if (flags.json) await printJson(io, run);
        found.push(run);
      }
      if (!flags.json) await io.print(found.length === 0 ? 'No runs.\n' : runTable(found));
    }),
  );

  storeCommand(runs, 'abort <snapshot>', 'ends the run of a snapshot as aborted; its worker stops').action(
    (snapshotId: string, flags: StoreFlags) =>
      withStore(io, flags, [], async ({ store, caller }) => {
        const { abortRun } = await importPackage(() => import('genkitx-agents'));
        const status = await abortRun(store, snapshotId, caller);
        if (status === 'pending') return io.say(`Aborted: snapshot ${snapshotId}`);
        throw new Problem(
          status === undefined
            ? `The store has no snapshot '${snapshotId}'.`
            : `Snapshot '${snapshotId}' does not run: it is ${status}.`,
        );
      }),
  );

  storeCommand(runs, 'recover', 'takes over the runs of dead processes, and continues them until they end')
    .requiredOption('--app <export>', './app.ts#ai: your Genkit instance, with its agents')
    .action((flags: StoreFlags & { readonly app: string }) =>
      withStore(io, flags, [], async (open) => {
        const place = parseStoreUrl(flags.app, io.folder);
        if (place.kind !== 'module')
          throw new WrongUse(`--app takes an export of a module, say ./app.ts#ai, not '${flags.app}'.`);
        const ai = (await loadExport(place, io.folder)) as GenkitOrRegistry;
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

/** The runs of a tenant: its running snapshots. */
async function* runsIn({ store, caller }: OpenStore): AsyncGenerator<Run> {
  for await (const { sessionId, status, leafCount } of itemsOf((page) => store.listSessions({ ...caller, ...page }))) {
    // With one branch, a run is at its end; with several, it may be in any.
    if (leafCount === 1 && status !== 'pending') continue;
    for await (const one of itemsOf((page) => store.listSnapshots({ ...caller, ...page, sessionId }))) {
      if (one.status === 'pending') yield runOf(sessionId, one);
    }
  }
}

function runOf(sessionId: string, snapshot: SnapshotMetadata): Run {
  const { snapshotId, heartbeatAt, backgroundRun } = snapshot as SnapshotMetadata & {
    backgroundRun?: { agent: string; owner: string; generation: number; leaseMs?: number };
  };
  const run = { sessionId, snapshotId };
  if (heartbeatAt === undefined) return { ...run, state: 'waiting' };
  if (backgroundRun?.owner === '') {
    return { ...run, agent: backgroundRun.agent, attempt: backgroundRun.generation, state: 'released' };
  }
  const leaseMs = backgroundRun ? (backgroundRun.leaseMs ?? Infinity) : GENKIT_LEASE_MS;
  const beganAt = Date.parse(heartbeatAt);
  const until = beganAt + leaseMs;
  return {
    ...run,
    heartbeatAt,
    ...(backgroundRun && { agent: backgroundRun.agent, owner: backgroundRun.owner, attempt: backgroundRun.generation }),
    // A heartbeat in the future is of a process whose clock was wrong.
    state: Math.abs(Date.now() - beganAt) > leaseMs ? 'expired' : 'running',
    ...(Number.isFinite(until) && { leaseUntil: new Date(until).toISOString() }),
  };
}

function runTable(runs: readonly Run[]): string {
  return table(runs, [
    { name: 'snapshot', of: ({ snapshotId }) => snapshotId },
    { name: 'session', of: ({ sessionId }) => sessionId },
    { name: 'state', of: ({ state }) => state },
    { name: 'agent', of: ({ agent }) => agent },
    { name: 'owner', of: ({ owner }) => owner },
    { name: 'attempt', of: ({ attempt }) => attempt },
    { name: 'heartbeat (UTC)', of: ({ heartbeatAt }) => time(heartbeatAt) },
    { name: 'lease until', of: ({ leaseUntil }) => time(leaseUntil) },
  ]);
}

/** Waits until a run has ended. Returns its status. */
async function ended(io: Io, { store, caller }: OpenStore, snapshotId: string): Promise<string> {
  for (;;) {
    const status = (await store.getSnapshotMetadata({ ...caller, snapshotId }))?.status;
    if (status !== 'pending' && status !== 'expired') return status ?? 'gone';
    io.signal.throwIfAborted();
    io.progress(`Snapshot ${snapshotId} runs`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
