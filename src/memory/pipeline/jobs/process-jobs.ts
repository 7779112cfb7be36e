import type { ActionContext } from 'genkit';
import type { Registry } from 'genkit/registry';
import { failedPrecondition, invalidArgument, logWarning } from '../../../errors.ts';
import { checkOptions, isObject, isWhole } from '../../../store/check-options.ts';
import type { SessionSummary } from '../../../store/contract.ts';
import type { BackfillOptions, BackfillResult } from '../../backfill.ts';
import type { MemoryManager } from '../../manager.ts';
import type { MemoryTriggers, ProcessMemoryJobsResult } from '../../types.ts';
import type { MemorySessions } from '../ingest/mark-as-read.ts';
import type { MemoryWorker } from './worker.ts';

/** A registered symbol, because the ES module and the CommonJS copy of the package must find each other's managers. */
const MANAGED = Symbol.for('genkitx-agents.memory-managers');

/** The idle time with `onIdleMs: false`. */
const IDLE_MS = 900_000;

/** The parts of a manager that `processMemoryJobs` uses. */
export interface ManagedJobs {
  /** The sessions of agents that learn. */
  readonly sessions: ReadonlySet<MemorySessions>;
  readonly onIdleMs: Required<MemoryTriggers>['onIdleMs'];
  /** Enqueues the jobs of sessions without waking the worker. */
  readonly backfill: (options: BackfillOptions) => Promise<BackfillResult>;
  readonly worker: MemoryWorker;
}

type Managing = object & { [MANAGED]?: Set<ManagedJobs> };

/** Returns the registered jobs of a Genkit instance's open managers, or of one manager, for `processMemoryJobs`. */
export function managedJobsOf(holder: Managing): Set<ManagedJobs> {
  if (!holder[MANAGED]) Object.defineProperty(holder, MANAGED, { value: new Set<ManagedJobs>() });
  return holder[MANAGED]!;
}

/** Options of {@link processMemoryJobs}. */
export interface ProcessMemoryJobsOptions {
  /** Names the tenant. Default: none. */
  context?: ActionContext;
  /** The time in which jobs are started, in ms. Default: 540,000 (9 minutes). */
  withinMs?: number;
  /** Checks only sessions that became idle within this time, in ms. Use more than the scheduler's interval. Default: 86,400,000 (a day). */
  sessionsWithinMs?: number;
}

/**
 * Runs the memory jobs of a tenant until no job is due. Resolves when this process runs none of the tenant's jobs. Call it from a scheduler
 * or a task queue if processes may end before their jobs. First it checks idle sessions whose last reply is from an agent that learns, and
 * enqueues messages that no trigger has enqueued. A session is idle after `generate.onIdleMs` (15 minutes if that is `false`).
 *
 * @param ai The `Genkit` instance with the memory managers, or one manager.
 * @throws `INVALID_ARGUMENT` if `ai` is neither; `FAILED_PRECONDITION` if there is no open manager; the stores' errors from reading jobs,
 *   after the other managers are done. A job that fails is counted and tried again later.
 * @example
 * // Every minute.
 * const { done, dead } = await processMemoryJobs(ai);
 */
export async function processMemoryJobs(
  ai: { readonly registry: Registry } | MemoryManager,
  options: ProcessMemoryJobsOptions = {},
): Promise<ProcessMemoryJobsResult> {
  checkOptions('processMemoryJobs', options, { context: isObject, withinMs: isWhole(1), sessionsWithinMs: isWhole(1) });
  const { context, withinMs = 540_000, sessionsWithinMs = 86_400_000 } = options;
  const result: ProcessMemoryJobsResult = { done: 0, failed: 0, dead: 0, found: 0 };
  const end = Date.now() + withinMs;
  const errors: unknown[] = [];
  for (const { sessions, onIdleMs, backfill, worker } of openJobs(ai)) {
    const idleMs = onIdleMs || IDLE_MS;
    const isIdle = ({ updatedAt }: SessionSummary) => Date.now() - Date.parse(updatedAt) >= idleMs;
    for (const { store, agents, scopeOf } of sessions) {
      const idleScopeOf: typeof scopeOf = (session, of) =>
        agents.has(session.agent) && isIdle(session) ? scopeOf(session, of) : undefined;
      try {
        const withinIdleMs = sessionsWithinMs + idleMs;
        const { enqueued } = await backfill({ store, scopeOf: idleScopeOf, context, withinMs: withinIdleMs });
        result.found += enqueued;
      } catch (error) {
        logWarning('Nothing was learned from the idle sessions of an agent.', error);
      }
    }
    try {
      while (Date.now() < end) {
        const made = await worker.attempt({ context });
        if (!made) break;
        if (made.attempt !== 'lost') result[made.attempt]++;
      }
    } catch (error) {
      errors.push(error);
    }
    // The background worker of this process may have taken some of the jobs.
    await worker.settled({ context });
  }
  if (errors.length > 0) throw errors[0];
  return result;
}

function openJobs(ai: unknown): readonly ManagedJobs[] {
  const { registry } = (ai ?? {}) as { readonly registry?: unknown };
  const isGenkit = typeof registry === 'object' && registry !== null;
  const jobs = ((isGenkit ? registry : ai) as Managing | null | undefined)?.[MANAGED];
  if (!jobs && !isGenkit)
    throw invalidArgument('processMemoryJobs needs the Genkit instance with the memory managers, or one manager.');
  if (jobs?.size) return [...jobs];
  throw failedPrecondition(
    'processMemoryJobs found no open memory manager. Call memoryManager(ai, { ... }) with this Genkit instance first.',
  );
}
