import type { ActionContext } from 'genkit';
import type { SessionSnapshot, SessionStore } from 'genkit/beta';
import { logger } from 'genkit/logging';
import { failedPrecondition, quote } from '../errors.ts';
import type { AgentDefinition } from './agent-definition.ts';

/** What is written into an interrupted snapshot while, and after, a turn runs its tools again. */
interface Resumption {
  /** The turn's snapshot. */
  by: string;
  /** When the turn was known to be alive. */
  at: string;
}

type Claimed<State> = SessionSnapshot<State> & { resumption?: Resumption };

/** Which turn wants to run which snapshot's interrupted tools. */
export interface ClaimRequest<State> {
  agent: AgentDefinition<State>;
  /** The interrupted snapshot. */
  interruptedId: string;
  /** The turn's own snapshot. */
  turnId: string;
  context: ActionContext | undefined;
}

/**
 * The right to run the tools that a snapshot has interrupted. It is written into that snapshot, which a store changes in one step: of any
 * number of approvals, in whatever process, one gets it. It ends with a turn that comes to nothing, or whose process died.
 */
export class ResumeClaim<State> {
  readonly #request: ClaimRequest<State>;
  readonly #store: SessionStore<State>;
  readonly #timer: NodeJS.Timeout;

  private constructor(request: ClaimRequest<State>, store: SessionStore<State>) {
    this.#request = request;
    this.#store = store;
    this.#timer = setInterval(() => void this.#renew(), request.agent.background.heartbeatIntervalMs);
    this.#timer.unref();
  }

  /** @throws `FAILED_PRECONDITION` when another turn has run the tools, or is at it. */
  static async take<State>(request: ClaimRequest<State>, store: SessionStore<State>): Promise<ResumeClaim<State>> {
    const { agent, interruptedId, turnId, context } = request;
    const holder = await write(request, store, (found) => (found ? undefined : now(turnId)));
    if (holder && holder.by !== turnId) {
      const isOver = async () => {
        const turn = await store.getSnapshot({ snapshotId: holder.by, context });
        if (turn) return turn.status === 'failed' || turn.status === 'aborted';
        return Date.now() - Date.parse(holder.at) > agent.background.leaseMs;
      };
      const next = (await isOver())
        ? await write(request, store, (found) => (found?.by === holder.by ? now(turnId) : undefined))
        : holder;
      if (next?.by !== turnId) {
        throw failedPrecondition(
          `The interrupt of snapshot ${quote(interruptedId)} has been approved already: its tools run once. ` +
            `Continue from snapshot ${quote(next?.by ?? holder.by)}.`,
        );
      }
    }
    return new ResumeClaim(request, store);
  }

  /** The turn is over. Without a result somebody else may try again. */
  async end(hasResult: boolean): Promise<void> {
    clearInterval(this.#timer);
    if (hasResult) return;
    try {
      await write(this.#request, this.#store, (found) => (found?.by === this.#request.turnId ? null : undefined));
    } catch (error) {
      logger.warn(`The claim on an interrupt could not be given back; it ends with its lease. ${String(error)}`);
    }
  }

  async #renew(): Promise<void> {
    const { turnId } = this.#request;
    await write(this.#request, this.#store, (found) => (found?.by === turnId ? now(turnId) : undefined)).catch(
      () => {},
    );
  }
}

function now(by: string): Resumption {
  return { by, at: new Date().toISOString() };
}

/**
 * Changes the claim in the interrupted snapshot and answers whose it is then.
 *
 * @param decide Gets the claim there is; answers the new one, `null` to remove it, `undefined` to leave it.
 */
async function write<State>(
  { interruptedId, context }: ClaimRequest<State>,
  store: SessionStore<State>,
  decide: (found: Resumption | undefined) => Resumption | null | undefined,
): Promise<Resumption | undefined> {
  let after: Resumption | undefined;
  await store.saveSnapshot(
    interruptedId,
    (current: Claimed<State> | undefined) => {
      const { resumption: found, ...snapshot } = current ?? {};
      const next = decide(found);
      after = next === undefined ? found : (next ?? undefined);
      if (!current || next === undefined) return null;
      return { ...(snapshot as SessionSnapshot<State>), ...(next && { resumption: next }) };
    },
    { context },
  );
  return after;
}
