import type { ActionContext } from 'genkit';
import { logger } from 'genkit/logging';
import { logWarning } from '../../errors.ts';
import type { DefinedAgent } from '../defined-agents.ts';
import { isShuttingDown } from '../hand-over.ts';
import { contextFor } from '../registry.ts';
import { recoverListed } from './recover-runs.ts';

/** Gives the rest of the application, such as models and tools, time to be defined. */
const START_DELAY_MS = 1000;

/** Tolerance for clock differences and late heartbeats, in leases. */
const MARGIN = 3;

/** How often all sessions are searched again. */
const FULL_SEARCH_MS = 24 * 3_600_000;

/** The timer of each store. */
const watched = new WeakMap<object, RecoveryTimer>();

/** Lets this process look for runs of the agent to take over, periodically. */
export function keepRecovering(defined: DefinedAgent): void {
  const { agent } = defined;
  if (!agent.sharedStore || !agent.can.list) {
    logger.warn(
      `Agent '${agent.name}' has background.recover, but its store cannot list its sessions, so runs whose process died are not found. ` +
        `Call recoverRuns with their snapshotIds.`,
    );
    return;
  }
  const timer = watched.get(agent.sharedStore) ?? new RecoveryTimer();
  watched.set(agent.sharedStore, timer);
  timer.add(defined);
}

/** The contexts of the tenants in which the agents look for runs. */
async function contextsOf(agents: readonly DefinedAgent[]): Promise<Map<string, ActionContext | undefined>> {
  const tenants = new Map<string, ActionContext | undefined>();
  for (const { agent } of agents) {
    const { recoverContexts } = agent.background;
    await unlessFailed(async () => {
      for (const each of recoverContexts ? await recoverContexts() : [undefined]) {
        const context = contextFor(agent.registry, each);
        tenants.set(JSON.stringify(context), context);
      }
    });
  }
  return tenants;
}

/** A tenant that can't be searched must not stop the search of the others. */
async function unlessFailed(search: () => Promise<void>): Promise<void> {
  try {
    await search();
  } catch (error) {
    logWarning('Looking for runs to take over failed; it will be tried again.', error);
  }
}

/** Looks for dead runs of the agents of one store: in all sessions first and once a day, otherwise in those written since the last search. */
class RecoveryTimer {
  readonly #agents: DefinedAgent[] = [];
  readonly #since = new Map<string, number>();
  /** The wall clock and a clock that never jumps, when the last search began. */
  #last = { at: Date.now(), steady: performance.now() };
  #fullAt = 0;
  #timer: NodeJS.Timeout | undefined;

  add(defined: DefinedAgent): void {
    this.#agents.push(defined);
    // Earlier searches may have skipped the runs of an agent that was not yet defined.
    this.#since.clear();
    this.#schedule(Math.min(START_DELAY_MS, this.#leaseMs));
  }

  get #leaseMs(): number {
    return Math.min(...this.#agents.map(({ agent }) => agent.background.leaseMs));
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#search(), ms);
    this.#timer.unref();
  }

  async #search(): Promise<void> {
    const agents = this.#staying();
    if (agents.length === 0) return;
    const begun = { at: Date.now(), steady: performance.now() };
    const jumpMs = begun.at - this.#last.at - (begun.steady - this.#last.steady);
    this.#last = begun;
    // After a jump of the clock, runs may be older than the last search. A session with a wrong time is found once a day.
    if (Math.abs(jumpMs) > this.#leaseMs || begun.at - this.#fullAt >= FULL_SEARCH_MS) {
      this.#since.clear();
      this.#fullAt = begun.at;
    }
    const longest = Math.max(...agents.map(({ agent }) => agent.background.leaseMs));
    for (const [tenant, context] of await contextsOf(agents)) {
      await unlessFailed(async () => {
        const known = this.#agents.length;
        let hasSessions = false;
        const onListed = () => (hasSessions = true);
        const since = this.#since.get(tenant);
        const { hasFailed } = await recoverListed(this.#staying(), { context, since, onListed });
        // The heartbeat of a live run is at most about a lease old. After a failure the next search must find the run again, and after an
        // empty list too: the directory of a store may be unavailable for a time.
        if (!hasFailed && hasSessions && known === this.#agents.length) {
          this.#since.set(tenant, begun.at - MARGIN * longest);
        }
      });
    }
    this.#schedule(this.#leaseMs);
  }

  #staying(): DefinedAgent[] {
    return this.#agents.filter(({ agent }) => !isShuttingDown(agent.registry));
  }
}
