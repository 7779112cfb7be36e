import type { ActionContext } from 'genkit';
import { logger } from 'genkit/logging';
import { describeThrown } from '../../errors.ts';
import type { DefinedAgent } from '../define/defined-agents.ts';
import { isLeaving } from '../background/hand-over.ts';
import { contextFor } from '../define/in-process.ts';
import { recoverListed } from './recover-runs.ts';
import { statusOf } from '../runtime-error.ts';

/** Once an agent is defined the rest of the application is, too: its models, its tools. */
const START_DELAY_MS = 1000;

/** How far the clocks of the processes may be apart, and how late a heartbeat may be written, in leases. */
const SLACK = 3;

/** Stores that are looked after. */
const watched = new WeakMap<object, RecoveryTimer>();

/** From now on this process looks for runs of the agent to take over. */
export function keepRecovering(defined: DefinedAgent): void {
  const { agent } = defined;
  if (!agent.sharedStore || !agent.can.list) {
    logger.warn(
      `Agent '${agent.name}' has background.recover, and its store cannot list its sessions: runs whose process died are not found. ` +
        `Call recoverRuns with their snapshotIds.`,
    );
    return;
  }
  const timer = watched.get(agent.sharedStore) ?? new RecoveryTimer();
  watched.set(agent.sharedStore, timer);
  timer.add(defined);
}

/** The contexts of the tenants whose runs the agent looks after. */
async function contextsOf({ agent }: DefinedAgent): Promise<(ActionContext | undefined)[]> {
  const { recoverContexts } = agent.background;
  const contexts = recoverContexts ? await recoverContexts() : [undefined];
  return contexts.map((context) => contextFor(agent.registry, context));
}

/** Looks for the dead runs of the agents of one store: of all sessions first, then of those written since it looked last. */
class RecoveryTimer {
  readonly #agents: DefinedAgent[] = [];
  readonly #since = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  add(defined: DefinedAgent): void {
    this.#agents.push(defined);
    // Its runs may have been passed over: they were nobody's.
    this.#since.clear();
    this.#schedule(Math.min(START_DELAY_MS, this.#leaseMs));
  }

  get #leaseMs(): number {
    return Math.min(...this.#agents.map(({ agent }) => agent.background.leaseMs));
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), ms);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const staying = this.#agents.filter(({ agent }) => !isLeaving(agent.registry));
    if (staying.length === 0) return;
    try {
      const contexts = await Promise.all(staying.map(contextsOf));
      const longest = Math.max(...staying.map(({ agent }) => agent.background.leaseMs));
      for (const [tenant, context] of new Map(contexts.flat().map((each) => [JSON.stringify(each), each]))) {
        const now = Date.now();
        const known = this.#agents.length;
        const agents = this.#agents.filter(({ agent }) => !isLeaving(agent.registry));
        const { hasFailed } = await recoverListed(agents, { context, since: this.#since.get(tenant) });
        // What is alive now has a heartbeat that is hardly older than a lease. A run that could not be taken over is to be found again.
        if (!hasFailed && known === this.#agents.length) this.#since.set(tenant, now - SLACK * longest);
      }
    } catch (error) {
      if (statusOf(error) === 'FAILED_PRECONDITION') return;
      logger.warn(`Looking for runs to take over failed; it is tried again. ${describeThrown(error)}`);
    }
    this.#schedule(this.#leaseMs);
  }
}
