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

/** The contexts of the tenants in which the agent looks for runs. */
async function contextsOf({ agent }: DefinedAgent): Promise<(ActionContext | undefined)[]> {
  const { recoverContexts } = agent.background;
  const contexts = recoverContexts ? await recoverContexts() : [undefined];
  return contexts.map((context) => contextFor(agent.registry, context));
}

/** Looks for dead runs of the agents of one store: in all sessions first, then in those written since the last search. */
class RecoveryTimer {
  readonly #agents: DefinedAgent[] = [];
  readonly #since = new Map<string, number>();
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
    const staying = this.#agents.filter(({ agent }) => !isShuttingDown(agent.registry));
    if (staying.length === 0) return;
    try {
      const contexts = await Promise.all(staying.map(contextsOf));
      const longest = Math.max(...staying.map(({ agent }) => agent.background.leaseMs));
      for (const [tenant, context] of new Map(contexts.flat().map((each) => [JSON.stringify(each), each]))) {
        const now = Date.now();
        const known = this.#agents.length;
        const agents = this.#agents.filter(({ agent }) => !isShuttingDown(agent.registry));
        let hasSessions = false;
        const onListed = () => (hasSessions = true);
        const { hasFailed } = await recoverListed(agents, { context, since: this.#since.get(tenant), onListed });
        // The heartbeat of a live run is at most about a lease old. After a failure the next search must find the run again, and after an
        // empty list too: the directory of a store may be unavailable for a time.
        if (!hasFailed && hasSessions && known === this.#agents.length) this.#since.set(tenant, now - MARGIN * longest);
      }
    } catch (error) {
      logWarning('Looking for runs to take over failed; it will be tried again.', error);
    }
    this.#schedule(this.#leaseMs);
  }
}
