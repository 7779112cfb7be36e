import type { GenerationUsage } from 'genkit';
import type { AgentOutput, MessageData, SessionState } from 'genkit/beta';
import { AgentInitError, logWarning } from '../../errors.ts';
import type { TurnOutcome } from '../../session/turn.ts';
import type { Session } from '../../session/session.ts';
import { takeUsage, usageOf } from '../../session/usage.ts';
import { reserveSnapshotId } from '../../snapshot/ids.ts';
import type { AbortScope } from '../abort-scope.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import type { Caller } from '../open/agent-scopes.ts';
import type { TurnCommits } from '../save/commit-turn.ts';
import { registerRun } from '../hand-over.ts';
import type { Intake, TurnRequest } from '../intake.ts';
import { startLeaseRenewal } from './renew-lease.ts';
import { RunLease, storedTurn } from '../run-lease.ts';
import { storedError, toRuntimeError } from '../runtime-error.ts';
import { ABORTED, failed, givenUp, type TurnEnding } from '../turn-ending.ts';

export interface BackgroundRunOptions<State> {
  agent: AgentDefinition<State>;
  session: Session<State>;
  intake: Intake;
  commits: TurnCommits<State>;
  scope: AbortScope;
  caller: Caller;
}

const NO_TURN: Pick<TurnRequest, 'input' | 'begun'> = { input: {}, begun: true };

/**
 * Continues a call whose caller detached. Its turns, the running one and the waiting ones, are stored as pending snapshots before any of them
 * continues, each the child of the one before. From then on clients follow and abort the call through the store, and another process can take
 * it over when this one dies.
 */
export class BackgroundRun<State> {
  readonly #options: BackgroundRunOptions<State>;
  /** The turns that are stored as pending, in order. */
  #turns: readonly TurnRequest[] = [];
  /** The turns whose end is stored. */
  readonly #ended = new Set<string>();
  #storing: Promise<void> | undefined;
  #isOver = false;
  /** Called when {@link settle} is done. */
  #onSettled: () => void = () => {};
  readonly #releases: (() => void)[] = [];

  constructor(options: BackgroundRunOptions<State>) {
    this.#options = options;
  }

  /**
   * Returns the caller's output and lets the turns continue. The output has the snapshot id of the last turn. When that snapshot is
   * terminal, all turns have ended.
   *
   * @throws AgentInitError `FAILED_PRECONDITION` for an agent without a store.
   */
  async begin(waiting: readonly TurnRequest[]): Promise<AgentOutput> {
    const { agent, session, intake, commits, scope } = this.#options;
    const { sessionId } = session;
    if (!agent.store) {
      scope.abort();
      throw new AgentInitError({
        status: 'FAILED_PRECONDITION',
        message: `Agent '${agent.name}' cannot detach: it has no store for the result. Set its 'store', or send the input without 'detach'.`,
      });
    }
    // A turn that has already ended does not belong to the run.
    await commits.saving;
    const { current } = intake;
    const turns = [...(current ? [current] : []), ...waiting];
    const { snapshotId: last } = commits.lastGood;
    if (turns.length === 0 && last !== undefined) {
      intake.startWaiting();
      return { sessionId, snapshotId: last, finishReason: 'detached' };
    }
    this.#turns = turns.length > 0 ? turns : [{ ...NO_TURN, snapshotId: reserveSnapshotId() }];
    try {
      this.#storing = current ? this.#store() : this.#storeClaimed(turns[0]);
      await this.#storing;
      this.#follow();
    } catch (error) {
      scope.abort();
      return {
        sessionId,
        ...(last !== undefined && { snapshotId: last }),
        finishReason: 'failed',
        error: toRuntimeError(error),
      };
    }
    intake.startWaiting();
    return { sessionId, snapshotId: this.#turns.at(-1)!.snapshotId, finishReason: 'detached' };
  }

  /** Continues a run that was taken over. `lease` covers the pending snapshots of the intake's turns. */
  takeOver(lease: RunLease, snapshotIds: readonly string[]): void {
    const { intake, commits } = this.#options;
    this.#turns = snapshotIds.map(
      (snapshotId) => intake.waiting.find((turn) => turn.snapshotId === snapshotId) ?? { ...NO_TURN, snapshotId },
    );
    commits.writer.runAs(lease, snapshotIds);
    this.#follow();
  }

  /** True once the caller has detached and the store has recorded it. */
  get hasBegun(): boolean {
    return this.#turns.length > 0;
  }

  /** Records that the end of a turn is stored: its snapshot is terminal. */
  turnEnded(outcome: TurnOutcome): void {
    if (outcome.status !== 'aborted' && outcome.snapshotId !== undefined) this.#ended.add(outcome.snapshotId);
  }

  /** The id of the last turn whose end is not stored, if any. Its snapshot gets the state that the function changes outside of a turn. */
  openId(): string | undefined {
    return this.#turns.findLast((turn) => !this.#ended.has(turn.snapshotId))?.snapshotId;
  }

  /** Ends the run: stores an end for each open turn, and stops the timer and the watchers. `undefined` when the caller never detached. */
  settle(outcome: TurnOutcome | undefined): Promise<void> | undefined {
    this.#isOver = true;
    return this.hasBegun ? this.#settleAll(outcome).finally(() => this.#onSettled()) : undefined;
  }

  async #settleAll(outcome: TurnOutcome | undefined): Promise<void> {
    await this.#storing?.catch(() => {});
    this.#release();
    const { commits } = this.#options;
    const { writer, parentId } = commits;
    const states = this.#statesOf(this.#turns);
    // A turn that failed and could not be saved.
    let failure = outcome?.status === 'failed' && outcome.snapshotId === undefined ? outcome : undefined;
    for (const [i, { snapshotId }] of this.#turns.entries()) {
      // Turns that were never stored as pending are unknown to every other process.
      if (this.#ended.has(snapshotId) || !writer.mayBePending(snapshotId)) continue;
      const ending = failure ? failed(storedError(commits.logFailure(snapshotId, failure.error))) : endingOf(outcome);
      failure = undefined;
      // A takeover finds the run by its last snapshot, so that one stays pending while an earlier turn may lack its end.
      const content = await commits.contentOf(snapshotId, states[i]!);
      const used = takeUsage(this.#options.session);
      if ((await writer.end(snapshotId, parentId, { ...ending, ...used }, content)) === undefined) break;
    }
  }

  /** Releases the run: the store then refuses all later writes of this process to it. */
  async #handOver(): Promise<boolean> {
    const { agent, commits, scope } = this.#options;
    this.#release();
    let isHandedOver = false;
    try {
      // The last snapshot, by which the run is found, is released last: until then it has an owner.
      for (const { snapshotId } of this.#turns)
        isHandedOver = (await commits.writer.release(snapshotId, this.#usageOf(snapshotId))) || isHandedOver;
    } catch (error) {
      logWarning(
        `A run of agent '${agent.name}' could not be handed over; another process can take it over when its lease expires.`,
        error,
      );
    }
    scope.abort();
    return isHandedOver;
  }

  #release(): void {
    for (const release of this.#releases.splice(0)) release();
  }

  /** Before anything is stored, claims the tools that the first turn runs again, so that a refused approval saves nothing. */
  async #storeClaimed(first: TurnRequest | undefined): Promise<void> {
    const { commits } = this.#options;
    const claim = first?.input.resume?.restart?.length ? await commits.claimTools(first.snapshotId) : undefined;
    let isStored = false;
    try {
      await this.#store();
      isStored = true;
    } finally {
      // A stored turn takes the claim again, under its own id, when it runs.
      await claim?.end(isStored);
    }
  }

  async #store(): Promise<void> {
    const { agent, commits, caller } = this.#options;
    const { context, userId } = caller;
    let { parentId } = commits;
    const states = this.#statesOf(this.#turns);
    const kept = context && agent.background.keepContext?.(context);
    const lease = RunLease.first({
      id: this.#turns.at(-1)!.snapshotId,
      agent: agent.name,
      leaseMs: agent.background.leaseMs,
      ...(parentId !== undefined && { baseId: parentId }),
      ...(userId !== undefined && { userId }),
      ...(kept && { context: kept }),
    });
    commits.writer.runAs(lease);
    for (const [i, request] of this.#turns.entries()) {
      const { snapshotId, input } = request;
      if (snapshotId !== commits.parentId) {
        const content = await commits.contentOf(snapshotId, states[i]!);
        const turn = input === NO_TURN.input ? undefined : storedTurn(input, content.state.messages ?? []);
        const backgroundRun = lease.recordOf({ turn, usage: this.#usageOf(snapshotId) });
        await commits.writer.savePending(snapshotId, parentId, { ...content, backgroundRun });
      }
      parentId = snapshotId;
    }
  }

  /** The state of each turn: the progress so far, and the prompts up to the turn's own. */
  #statesOf(turns: readonly TurnRequest[]): SessionState<State>[] {
    if (turns.length === 0) return [];
    const base = this.#options.commits.stateSoFar();
    let messages: MessageData[] = base.messages ?? [];
    return turns.map(({ input, begun }) => {
      if (!begun && input.message?.role === 'user') messages = [...messages, input.message];
      return { ...base, messages };
    });
  }

  /** The usage of the turn so far. */
  #usageOf(snapshotId: string): GenerationUsage | undefined {
    const { intake, session } = this.#options;
    return intake.current?.snapshotId === snapshotId ? usageOf(session) : undefined;
  }

  /** From here on, an abort or a takeover in the store stops the run. */
  #follow(): void {
    if (this.#isOver) return;
    this.#watch();
    this.#keepLease();
    const ended = new Promise<void>((resolve) => (this.#onSettled = resolve));
    const { agent, commits } = this.#options;
    registerRun(agent.registry, { owner: commits.writer.owner, ended, handOver: () => this.#handOver() });
  }

  #keepLease(): void {
    const { agent, scope, commits } = this.#options;
    const stop = startLeaseRenewal({
      agent,
      writer: commits.writer,
      snapshotIds: this.#turns.map(({ snapshotId }) => snapshotId),
      isOpen: (snapshotId) => !this.#isOver && !this.#ended.has(snapshotId),
      usageOf: (snapshotId) => this.#usageOf(snapshotId),
      onLost: () => scope.abort(),
    });
    this.#releases.push(stop);
  }

  #watch(): void {
    const { agent, scope, commits, caller } = this.#options;
    const { context } = caller;
    for (const { snapshotId } of this.#turns) {
      const unsubscribe = agent.store?.onSnapshotStateChange?.(
        snapshotId,
        (snapshot) => {
          if (snapshot.status === 'aborted' || !commits.writer.holds(snapshot)) scope.abort();
        },
        { context },
      );
      if (unsubscribe) this.#releases.push(unsubscribe);
    }
  }
}

/** The end of a turn that did not run to completion. */
function endingOf(outcome: TurnOutcome | undefined): TurnEnding {
  if (outcome?.status === 'aborted') return ABORTED;
  const message =
    outcome?.status === 'failed'
      ? 'This turn was not run because the previous turn failed.'
      : 'This turn was not run because the agent ended before it.';
  return givenUp(message);
}
