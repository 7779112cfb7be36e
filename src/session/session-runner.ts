import type { GenerationUsage } from 'genkit';
import type { AgentFinishReason, AgentInput, Artifact, MessageData, SessionState } from 'genkit/beta';
import { failedPrecondition, invalidArgument } from '../errors.ts';
import { copyJson } from '../json/value.ts';
import type { ScopeRecord } from '../store/contract.ts';
import { viewOf, type PlainKeys, type Session, type SessionView } from './session.ts';
import { standaloneTurn } from './standalone-turn.ts';
import type { ScopedState } from './state/scoped-state.ts';
import type { RunTurn, RuntimeError, SessionRunnerOptions, TurnHandler, TurnOutcome } from './turn.ts';

const OPTIONS = ['store', 'lastSnapshot', 'abortSignal', 'onEndTurn', 'onDetach', 'runTurn'];

/**
 * The first argument of a custom agent's function: the session, and {@link run}, which runs each input as a turn.
 *
 * @example
 * defineCustomAgent(ai, { name: 'echo' }, async (sess) => {
 *   await sess.run(async (input) => {
 *     sess.addMessages([{ role: 'model', content: input.message?.content ?? [] }]);
 *   });
 *   return { message: sess.getMessages().at(-1) };
 * });
 */
export class SessionRunner<State = unknown, User = ScopeRecord, App = ScopeRecord> {
  /** The conversation that the turns work on. */
  readonly session: Session<State, User, App>;
  /** The inputs that no turn has taken yet; {@link run} reads them. */
  readonly inputCh: AsyncIterable<AgentInput>;
  /** {@link SessionRunnerOptions.onEndTurn} */
  onEndTurn?: (snapshotId?: string, finishReason?: AgentFinishReason) => void;
  /** {@link SessionRunnerOptions.onDetach} */
  onDetach?: (snapshotId: string) => void;
  readonly #runTurn: RunTurn;
  #lastGood: { snapshotId?: string; view: SessionView<State> };
  #turnIndex = 0;
  #lastOutcome: TurnOutcome | undefined;

  /** @throws `INVALID_ARGUMENT` for an unknown option. */
  constructor(
    session: Session<State, User, App>,
    inputCh: AsyncIterable<AgentInput>,
    options: SessionRunnerOptions<State> = {},
  ) {
    const unknown = typeof options === 'object' ? Object.keys(options).find((name) => !OPTIONS.includes(name)) : 'that';
    if (unknown !== undefined) {
      throw invalidArgument(`A SessionRunner has no option '${unknown}'. Its options are ${OPTIONS.join(', ')}.`);
    }
    this.session = session;
    this.inputCh = inputCh;
    this.onEndTurn = options.onEndTurn;
    this.onDetach = options.onDetach;
    this.#lastGood = { snapshotId: options.lastSnapshot?.snapshotId, view: viewOf(session) };
    this.#runTurn = options.runTurn ?? standaloneTurn(session, options);
  }

  /** {@link Session.sessionId} */
  get sessionId(): string {
    return this.session.sessionId;
  }

  /** The number of completed turns in this call of the agent. */
  get turnIndex(): number {
    return this.#turnIndex;
  }

  /** The outcome of the last turn; `undefined` before the first. */
  get lastOutcome(): TurnOutcome | undefined {
    return this.#lastOutcome;
  }

  /** The finish reason of the last turn. */
  get lastTurnFinishReason(): AgentFinishReason | undefined {
    const last = this.#lastOutcome;
    return last?.status === 'completed' ? last.finishReason : last?.status;
  }

  /** The error of the last turn. */
  get lastTurnError(): RuntimeError | undefined {
    return this.#lastOutcome?.status === 'failed' ? this.#lastOutcome.error : undefined;
  }

  /** The snapshot to continue from after a failed turn: that of the last completed turn, else the initial one. */
  get lastGoodSnapshotId(): string | undefined {
    return this.#lastGood.snapshotId;
  }

  /** A copy of the state after the last completed turn, else of the initial state. */
  get lastGoodState(): SessionState<State> {
    return copyJson(this.#lastGood.view) as SessionState<State>;
  }

  /**
   * Runs `handler` for each input, one after the other, until the caller closes the stream. The input's message is already in the session
   * when the handler runs; after it returns, the session is saved. A turn that fails or is aborted is the last one: no error is thrown, the
   * agent's output reports it.
   */
  async run(handler: TurnHandler): Promise<void> {
    for await (const input of this.inputCh) {
      const outcome = await this.#runTurn(input, handler, this.#turnIndex);
      this.#lastOutcome = outcome;
      if (outcome.status === 'completed') {
        const { snapshotId = this.#lastGood.snapshotId } = outcome;
        this.#lastGood = { snapshotId, view: viewOf(this.session) };
      }
      this.#notifyEnd(outcome);
      if (outcome.status !== 'completed') return;
      this.#turnIndex++;
    }
  }

  #notifyEnd(outcome: TurnOutcome): void {
    try {
      const saved = outcome.status === 'aborted' ? this.lastGoodSnapshotId : outcome.snapshotId;
      this.onEndTurn?.(saved, this.lastTurnFinishReason);
    } catch {
      // The turn has ended, so errors of its listener are ignored.
    }
  }

  /** @throws `FAILED_PRECONDITION`, always: Genkit's runner saves within a turn, but here a turn is saved once, at its end. */
  maybeSnapshot(): never {
    throw failedPrecondition(`A turn is saved once, after its handler has returned. To save twice, run two turns.`);
  }

  /** {@link Session.state} */
  get state(): ScopedState<PlainKeys<State>, User, App> {
    return this.session.state;
  }

  /** {@link Session.getState} */
  getState(): SessionState<State> {
    return this.session.getState();
  }

  /** {@link Session.getMessages} */
  getMessages(): MessageData[] {
    return this.session.getMessages();
  }

  /** {@link Session.addMessages} */
  addMessages(messages: readonly MessageData[]): void {
    this.session.addMessages(messages);
  }

  /** {@link Session.setMessages} */
  setMessages(messages: readonly MessageData[]): void {
    this.session.setMessages(messages);
  }

  /** {@link Session.getCustom} */
  getCustom(): State | undefined {
    return this.session.getCustom();
  }

  /** {@link Session.updateCustom} */
  updateCustom(mutator: (custom?: State) => State): void {
    this.session.updateCustom(mutator);
  }

  /** {@link Session.getArtifacts} */
  getArtifacts(): Artifact[] {
    return this.session.getArtifacts();
  }

  /** {@link Session.addArtifacts} */
  addArtifacts(artifacts: readonly Artifact[]): void {
    this.session.addArtifacts(artifacts);
  }

  /** {@link Session.addUsage} */
  addUsage(usage: GenerationUsage | undefined): void {
    this.session.addUsage(usage);
  }
}
