import type { ActionContext } from 'genkit';
import type { SessionSnapshot, SessionStore } from 'genkit/beta';
import { failedPrecondition, isUnreadable, logWarning, quote } from '../../errors.ts';
import { reserveSnapshotId } from '../../snapshot/ids.ts';
import type { AgentDefinition } from '../agent-definition.ts';

/** Stored in an interrupted snapshot while a turn runs its tools again, and afterwards. */
interface ClaimRecord {
  /** The snapshot id of the turn. */
  by: string;
  /** The worker of the turn. A run that was taken over has the same snapshot and a new owner. */
  owner: string;
  /** When the turn was last known to be alive. */
  at: string;
  /** A tool may have run: no other turn runs the tools from here on. */
  started?: true;
}

type Claimed<State> = SessionSnapshot<State> & { resumption?: ClaimRecord };

/** The turn that asks for the claim, and the snapshot whose interrupted tools it runs. */
export interface ResumeClaimRequest<State> {
  agent: AgentDefinition<State>;
  store: SessionStore<State>;
  /** The snapshot in which the interrupt was first saved. */
  interruptedId: string;
  /** The turn's own snapshot id. */
  turnId: string;
  context: ActionContext | undefined;
}

/**
 * The right to run the interrupted tools. It is stored in the snapshot in which the interrupt was first saved, even if a later snapshot has a
 * copy of it. The store updates a snapshot atomically, so exactly one of several concurrent approvals gets the claim. Until a tool starts, the
 * claim ends with a turn that fails or whose process died; after that it is final, however the turn ends.
 */
export class ResumeClaim<State> {
  readonly #request: ResumeClaimRequest<State>;
  readonly #owner: string;
  readonly #timer: NodeJS.Timeout;
  #starting: Promise<void> | undefined;
  #hasStarted = false;
  #isRefused = false;
  #isOver = false;

  private constructor(request: ResumeClaimRequest<State>, owner: string) {
    this.#request = request;
    this.#owner = owner;
    this.#timer = setInterval(() => void this.#renew(), request.agent.background.heartbeatIntervalMs);
    this.#timer.unref();
  }

  /** @throws `FAILED_PRECONDITION` when another turn has run the tools or is running them. */
  static async take<State>(request: ResumeClaimRequest<State>): Promise<ResumeClaim<State>> {
    const owner = reserveSnapshotId();
    const ours = (): ClaimRecord => ({ by: request.turnId, owner, at: new Date().toISOString() });
    let isGone = false;
    const holder = await write(request, (found, current) => {
      isGone = current === undefined;
      return found || isGone ? undefined : ours();
    });
    if (isGone) {
      throw failedPrecondition(
        `Snapshot ${quote(request.interruptedId)}, in which this interrupt was first saved, no longer exists, so it is unknown whether the interrupt was approved. ` +
          `Check whether the tools ran, then continue with resume.respond and their answers, or with another message.`,
      );
    }
    if (holder && holder.owner !== owner) {
      const next = (await isOver(request, holder))
        ? await write(request, (found) => (found?.owner === holder.owner && !found.started ? ours() : undefined))
        : holder;
      if (next?.owner !== owner) throw approvedAlready(request, next ?? holder);
    }
    return new ResumeClaim(request, owner);
  }

  /** @throws `FAILED_PRECONDITION` as {@link take}, which it does not do. */
  static async assertFree<State>(request: ResumeClaimRequest<State>): Promise<void> {
    const holder = await write(request, () => undefined);
    if (holder && !(await isOver(request, holder))) throw approvedAlready(request, holder);
  }

  /**
   * Checks that the caller may answer in place of the tools. They may do so after a turn that ran the tools and failed.
   *
   * @throws `FAILED_PRECONDITION` when a completed turn has their result.
   */
  static async assertNoResult<State>(request: ResumeClaimRequest<State>): Promise<void> {
    const { store, interruptedId, context } = request;
    const read = (snapshotId: string): Promise<Claimed<State> | undefined> =>
      store.getSnapshot({ snapshotId, context }).catch((error: unknown) => {
        if (isUnreadable(error)) return undefined;
        throw error;
      });
    const holder = (await read(interruptedId))?.resumption;
    const turn = holder && (await read(holder.by));
    if (turn?.status === 'completed') throw approvedAlready(request, holder!);
  }

  /**
   * Must be awaited before a tool runs: once it resolves, the store has recorded that a tool may have run.
   *
   * @throws `FAILED_PRECONDITION` when the tool must not run because the turn has ended or another turn owns the claim; and the store's errors.
   */
  async start(): Promise<void> {
    this.#starting ??= this.#markStarted();
    await this.#starting;
    if (this.#isOver && !this.#hasStarted) throw failedPrecondition('The turn has ended; the tool was not run.');
    this.#hasStarted = true;
  }

  /** True once {@link start} was refused: another turn owns the claim, and no tool of this one has run. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Ends the turn. If it has no result and no tool has started, another turn may claim the interrupt. */
  async end(hasResult: boolean): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#timer);
    await this.#starting?.catch(() => {});
    if (hasResult || this.#hasStarted) return;
    try {
      await write(this.#request, (found) => (found?.owner === this.#owner ? null : undefined));
    } catch (error) {
      logWarning('The claim on an interrupt could not be released; it expires with its lease.', error);
    }
  }

  async #markStarted(): Promise<void> {
    const { turnId } = this.#request;
    const holder = await write(this.#request, (found) => {
      // A missing record was released by the turn that took it over, or the store keeps no unknown fields.
      const isFree = !found || found.owner === this.#owner;
      const at = new Date().toISOString();
      return isFree && !this.#isOver ? { by: turnId, owner: this.#owner, at, started: true } : undefined;
    });
    if (!holder || holder.owner === this.#owner) return;
    this.#isRefused = true;
    throw approvedAlready(this.#request, holder);
  }

  async #renew(): Promise<void> {
    await write(this.#request, (found) =>
      found?.owner === this.#owner ? { ...found, at: new Date().toISOString() } : undefined,
    ).catch(() => {});
  }
}

/** Whether the turn that holds the claim ran no tool and never will. */
async function isOver<State>(
  { agent, store, turnId, context }: ResumeClaimRequest<State>,
  { by, at, started }: ClaimRecord,
): Promise<boolean> {
  if (started) return false;
  // A background turn that was taken over.
  if (by === turnId) return true;
  const turn = await store.getSnapshot({ snapshotId: by, context });
  if (turn) return turn.status === 'failed' || turn.status === 'aborted';
  return Date.now() - Date.parse(at) > agent.background.leaseMs;
}

function approvedAlready<State>({ interruptedId }: ResumeClaimRequest<State>, { by }: ClaimRecord): Error {
  return failedPrecondition(
    `The interrupt of snapshot ${quote(interruptedId)} was already approved, and its tools run only once. ` +
      `Continue from snapshot ${quote(by)}. If that turn did not complete, check whether the tools ran, then continue from ` +
      `${quote(interruptedId)} with resume.respond and their answers, or with another message.`,
  );
}

/**
 * Updates the claim in the interrupted snapshot and returns the record that is stored afterwards.
 *
 * @param decide Gets the stored claim; returns the new one, `null` to remove it, `undefined` to keep it.
 */
async function write<State>(
  { store, interruptedId, context }: ResumeClaimRequest<State>,
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
