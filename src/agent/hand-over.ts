import type { Registry } from 'genkit/registry';
import { checkOptions, isTimerMs } from '../store/check-options.ts';
import { withinTime } from '../store/parts/within-time.ts';
import { registryOf } from './registry.ts';
import type { GenkitOrRegistry } from './types.ts';

/** The end of a background run of this process. */
export interface EndingRun {
  /** The owner that its snapshots name, if it has snapshots. */
  readonly owner?: string;
  /** Resolves when the run's end is in the store, or another process owns the run. */
  readonly ended: Promise<unknown>;
  /** Stops the run and releases it for another process. Resolves to whether there was a run to release. Never rejects. */
  handOver(): Promise<boolean>;
}

/** Options of {@link handOverRuns}. */
export interface HandOverOptions {
  /** How long the runs may take to end by themselves, in ms. Default: 0. */
  graceMs?: number;
}

/** Result of {@link handOverRuns}. */
export interface HandOver {
  /** Number of released runs, which another process may take over at once. */
  handedOver: number;
}

/** The runs of a registry in this process. */
class Runs {
  readonly running = new Set<EndingRun>();
  isShuttingDown = false;
}

const runsByRegistry = new WeakMap<Registry, Runs>();

function runsOf(registry: Registry): Runs {
  const runs = runsByRegistry.get(registry) ?? new Runs();
  runsByRegistry.set(registry, runs);
  return runs;
}

/** Registers a background run that began here. */
export function registerRun(registry: Registry, run: EndingRun): void {
  const { running } = runsOf(registry);
  running.add(run);
  void run.ended.then(() => running.delete(run));
}

/** Whether this owner is a run of this process. It is alive even if its heartbeat looks old, because the clock may have been set forward. */
export function isRunHere(registry: Registry, owner: string | undefined): boolean {
  return owner !== undefined && [...runsOf(registry).running].some((run) => run.owner === owner);
}

/** True once this process is about to end. It then takes over no more runs. */
export function isShuttingDown(registry: Registry): boolean {
  return runsOf(registry).isShuttingDown;
}

/**
 * Hands over the background runs of this process; call it when the process is about to end. It waits for the runs, and stops those that need
 * longer than `graceMs`, so that another process can take them over at once instead of after their lease. Each continues from its last
 * completed turn; the turn that was running starts again, and the takeover counts toward the agent's `maxAttempts`.
 *
 * From the call on, this process takes over no runs by itself. Close the store after it, not before.
 *
 * @param ai The `Genkit` instance, or its registry, with the agents.
 * @throws `INVALID_ARGUMENT` for an unknown or invalid option, and when `ai` is neither. A run that the store could not release
 *   is found when its lease has expired.
 * @example
 * // On SIGTERM Genkit ends the process at once.
 * process.removeAllListeners('SIGTERM');
 * process.once('SIGTERM', async () => {
 *   await handOverRuns(ai, { graceMs: 5000 });
 *   await store.close();
 *   process.exit(0);
 * });
 */
export async function handOverRuns(ai: GenkitOrRegistry, options: HandOverOptions = {}): Promise<HandOver> {
  checkOptions('handOverRuns', options, { graceMs: isTimerMs(0) });
  const { graceMs = 0 } = options;
  const runs = runsOf(registryOf(ai));
  runs.isShuttingDown = true;
  await endedWithin(runs, graceMs);
  const results = await Promise.all([...runs.running].map(handOver));
  return { handedOver: results.filter(Boolean).length };
}

/** After this resolves, the run makes no more store calls. */
async function handOver(run: EndingRun): Promise<boolean> {
  const isHandedOver = await run.handOver();
  await run.ended;
  return isHandedOver;
}

/** Waits at most `graceMs` for the runs, including those that begin in the meantime. */
async function endedWithin({ running }: Runs, graceMs: number): Promise<void> {
  const allEnded = async () => {
    while (running.size > 0) await Promise.all([...running].map(({ ended }) => ended));
  };
  await withinTime('The runs', graceMs, undefined, allEnded).catch(() => {});
}
