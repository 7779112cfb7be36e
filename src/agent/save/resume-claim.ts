import type { ActionContext } from 'genkit';
import type { SessionSnapshot, SessionStore } from 'genkit/beta';
import { logger } from 'genkit/logging';
import { describeThrown, failedPrecondition, quote } from '../../errors.ts';
import { reserveSnapshotId } from '../../snapshot/ids.ts';
import type { AgentDefinition } from '../agent-definition.ts';

/** What is written into an interrupted snapshot while, and after, a turn runs its tools again. */
interface ClaimRecord {
  /** The turn's snapshot. */
  by: string;
  /** Who runs the turn: one that was taken over has the same snapshot. */
  owner: string;
  /** When the turn was known to be alive. */
  at: string;
  /** A tool may have run: from here on nobody else runs them. */
  started?: true;
}

type Claimed<State> = SessionSnapshot<State> & { resumption?: ClaimRecord };

/** Which turn wants to run which snapshot's interrupted tools. */
export interface ClaimRequest<State> {
  agent: AgentDefinition<State>;
  /** The snapshot in which the interrupt was first saved. */
  interruptedId: string;
  /** The turn's own snapshot. */
  turnId: string;
  context: ActionContext | undefined;
}

/**
 * The right to run the tools that were interrupted. It is written into the snapshot in which the interrupt was first saved, whichever later
 * snapshot has a copy of it, and a store changes a snapshot in one step: of any number of approvals, in whatever process, one gets it. Until a tool starts it ends with a turn that comes to nothing, or whose process
 * died; from then on it is final, whatever becomes of the turn.
 */
export class ResumeClaim<State> {
  readonly #request: ClaimRequest<State>;
  readonly #store: SessionStore<State>;
  readonly #owner: string;
  readonly #timer: NodeJS.Timeout;
  #starting: Promise<void> | undefined;
  #hasStarted = false;
  #isOver = false;

  private constructor(request: ClaimRequest<State>, store: SessionStore<State>, owner: string) {
    this.#request = request;
    this.#store = store;
    this.#owner = owner;
    this.#timer = setInterval(() => void this.#renew(), request.agent.background.heartbeatIntervalMs);
    this.#timer.unref();
  }

  /** @throws `FAILED_PRECONDITION` when another turn has run the tools, or is at it. */
  static async take<State>(request: ClaimRequest<State>, store: SessionStore<State>): Promise<ResumeClaim<State>> {
    const owner = reserveSnapshotId();
    const ours = (): ClaimRecord => ({ by: request.turnId, owner, at: new Date().toISOString() });
    let isGone = false;
    const holder = await write(request, store, (found, current) => {
      isGone = current === undefined;
      return found || isGone ? undefined : ours();
    });
    if (isGone) {
      throw failedPrecondition(
        `The snapshot ${quote(request.interruptedId)}, in which this interrupt was first saved, is gone, and with it whether it was approved. ` +
          `Find out what the tools did, and go on by resume.respond with their answers, or by another message.`,
      );
    }
    if (holder && holder.owner !== owner) {
      const next = (await isOver(request, store, holder))
        ? await write(request, store, (found) => (found?.owner === holder.owner && !found.started ? ours() : undefined))
        : holder;
      if (next?.owner !== owner) throw approvedAlready(request, next ?? holder);
    }
    return new ResumeClaim(request, store, owner);
  }

  /**
   * Has to be awaited before a tool runs: when it answers, the store knows that one did.
   *
   * @throws `FAILED_PRECONDITION` when the tool must not run: the turn is over, or the claim somebody else's by now; and what the store throws.
   */
  async start(): Promise<void> {
    this.#starting ??= this.#markStarted();
    await this.#starting;
    if (this.#isOver && !this.#hasStarted) throw failedPrecondition('The turn is over: the tool was not run.');
    this.#hasStarted = true;
  }

  /** The turn is over. Without a result, and when no tool has started, somebody else may try again. */
  async end(hasResult: boolean): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#timer);
    await this.#starting?.catch(() => {});
    if (hasResult || this.#hasStarted) return;
    try {
      await write(this.#request, this.#store, (found) => (found?.owner === this.#owner ? null : undefined));
    } catch (error) {
      logger.warn(
        `The claim on an interrupt could not be given back; it ends with its lease. ${describeThrown(error)}`,
      );
    }
  }

  async #markStarted(): Promise<void> {
    const { turnId } = this.#request;
    const holder = await write(this.#request, this.#store, (found) => {
      // One that is gone was given back by whoever took it over, or is in a store that keeps no unknown fields.
      const isFree = !found || found.owner === this.#owner;
      const at = new Date().toISOString();
      return isFree && !this.#isOver ? { by: turnId, owner: this.#owner, at, started: true } : undefined;
    });
    if (holder && holder.owner !== this.#owner) throw approvedAlready(this.#request, holder);
  }

  async #renew(): Promise<void> {
    await write(this.#request, this.#store, (found) =>
      found?.owner === this.#owner ? { ...found, at: new Date().toISOString() } : undefined,
    ).catch(() => {});
  }
}

/** Whether the turn that has the claim ran no tool and never will. */
async function isOver<State>(
  { agent, turnId, context }: ClaimRequest<State>,
  store: SessionStore<State>,
  { by, at, started }: ClaimRecord,
): Promise<boolean> {
  if (started) return false;
  // A turn in the background that was taken over.
  if (by === turnId) return true;
  const turn = await store.getSnapshot({ snapshotId: by, context });
  if (turn) return turn.status === 'failed' || turn.status === 'aborted';
  return Date.now() - Date.parse(at) > agent.background.leaseMs;
}

function approvedAlready<State>({ interruptedId }: ClaimRequest<State>, { by }: ClaimRecord): Error {
  return failedPrecondition(
    `The interrupt of snapshot ${quote(interruptedId)} has been approved already: its tools run once. ` +
      `Continue from snapshot ${quote(by)}. If that turn was not completed, find out what the tools did, and go on from ` +
      `${quote(interruptedId)} by resume.respond with their answers, or by another message.`,
  );
}

/**
 * Changes the claim in the interrupted snapshot and answers whose it is then.
 *
 * @param decide Gets the claim there is; answers the new one, `null` to remove it, `undefined` to leave it.
 */
async function write<State>(
  { interruptedId, context }: ClaimRequest<State>,
  store: SessionStore<State>,
  decide: (found: ClaimRecord | undefined, current: SessionSnapshot | undefined) => ClaimRecord | null | undefined,
): Promise<ClaimRecord | undefined> {
  let after: ClaimRecord | undefined;
  await store.saveSnapshot(
    interruptedId,
    (current: Claimed<State> | undefined) => {
      const { resumption: found, ...snapshot } = current ?? {};
      const next = decide(found, current);
      after = next === undefined ? found : (next ?? undefined);
      if (!current || next === undefined) return null;
      return { ...(snapshot as SessionSnapshot<State>), ...(next && { resumption: next }) };
    },
    { context },
  );
  return after;
}
