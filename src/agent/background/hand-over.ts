import type { Registry } from 'genkit/registry';
import { invalidArgument } from '../../errors.ts';
import { checkOptions, isWhole } from '../../store/options.ts';
import { registryOf } from '../define/settle-agent.ts';
import type { GenkitOrRegistry } from '../types.ts';

/** A background run of this process, as far as its end is concerned. */
export interface EndingRun {
  /** Resolves when the run has its end in the store, or is somebody else's. */
  readonly ended: Promise<void>;
  /** Stops it, and leaves it to whoever takes it over. Answers whether there was anything to leave. Does not reject. */
  letGo(): Promise<boolean>;
}

/** Options of {@link handOverRuns}. */
export interface HandOverOptions {
  /** How long the runs may take to end by themselves, in ms; none unless told. */
  graceMs?: number;
}

/** What {@link handOverRuns} came to. */
export interface HandOver {
  /** Runs that were let go: another process may take them over at once. */
  handedOver: number;
}

/** What this process has of a registry's runs. */
class Runs {
  readonly running = new Set<EndingRun>();
  isLeaving = false;
}

const runsByRegistry = new WeakMap<Registry, Runs>();

function runsOf(registry: Registry): Runs {
  const runs = runsByRegistry.get(registry) ?? new Runs();
  runsByRegistry.set(registry, runs);
  return runs;
}

/** A background run has begun here. */
export function noteRun(registry: Registry, run: EndingRun): void {
  const { running } = runsOf(registry);
  running.add(run);
  void run.ended.then(() => running.delete(run));
}

/** This process is about to end: it takes nothing over any more. */
export function isLeaving(registry: Registry): boolean {
  return runsOf(registry).isLeaving;
}

/**
 * Call it when the process is told to end. It waits for the background runs of this process, and stops those that need longer than `graceMs`,
 * so that another process may take them over at once rather than when their lease has ended. Each goes on from its last completed turn; the
 * turn that was running is run again from its beginning, and the takeover counts among the agent's `maxAttempts`.
 *
 * From the call on this process takes no runs over by itself. Close the store after it, not before.
 *
 * @param ai The `Genkit` instance, or its registry, with the agents.
 * @throws `INVALID_ARGUMENT` for an unknown or impossible option. A run that the store could not let go of is found when its lease has ended.
 * @example
 * process.once('SIGTERM', async () => {
 *   await handOverRuns(ai, { graceMs: 5000 });
 *   await store.close();
 *   process.exit(0);
 * });
 */
export async function handOverRuns(ai: GenkitOrRegistry, options: HandOverOptions = {}): Promise<HandOver> {
  checkOptions('handOverRuns', options, { graceMs: isWhole(0) });
  const { graceMs = 0 } = options;
  if (graceMs > MAX_DELAY_MS) throw invalidArgument(`handOverRuns: graceMs must be at most ${MAX_DELAY_MS}.`);
  const runs = runsOf(registryOf(ai));
  runs.isLeaving = true;
  await endedWithin(runs, graceMs);
  const left = await Promise.all([...runs.running].map(leave));
  return { handedOver: left.filter(Boolean).length };
}

/** When this answers, the run asks nothing of the store any more. */
async function leave(run: EndingRun): Promise<boolean> {
  const isLeft = await run.letGo();
  await run.ended;
  return isLeft;
}

/** Timers take no more: a longer delay would end at once. */
const MAX_DELAY_MS = 2_147_483_647;

/** Waits for the runs, those that begin meanwhile included, but no longer than that. */
async function endedWithin({ running }: Runs, graceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const isLate = new Promise<true>((resolve) => (timer = setTimeout(resolve, graceMs, true)));
  while (running.size > 0) {
    const allEnded = Promise.all([...running].map(({ ended }) => ended));
    if ((await Promise.race([isLate, allEnded])) === true) break;
  }
  clearTimeout(timer);
}
