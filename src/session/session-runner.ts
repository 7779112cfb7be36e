import type { GenerationUsage } from 'genkit';
import type {
  AgentFinishReason,
  AgentInput,
  AgentOutput,
  Artifact,
  MessageData,
  SessionSnapshot,
  SessionState,
  SessionStore,
} from 'genkit/beta';
import { failedPrecondition, invalidArgument } from '../errors.ts';
import { copyJson } from '../json/value.ts';
import type { ScopeRecord } from '../store/contract.ts';
import { viewOf, type PlainKeys, type Session, type SessionView } from './session.ts';
import { standaloneTurn } from './standalone-turn.ts';
import type { ScopedState } from './state/scoped-state.ts';

/** An error as it travels inside outputs and snapshots: a status name, a message, details that somebody gave on purpose. */
export type RuntimeError = NonNullable<AgentOutput['error']>;

/** What a turn's handler is told about the turn. */
export interface TurnContext {
  /** The id that the turn's snapshot will have, known before the turn runs: name a branch or a folder after it. */
  snapshotId: string;
  /** The snapshot that the turn continues from; `undefined` on a session's first turn. */
  parentSnapshotId?: string;
  /** 0 for the first turn of this call of the agent, and so on. */
  turnIndex: number;
}

/** What a turn's handler may answer. */
export interface TurnResult {
  /** Why the turn ended; none is reported unless told. */
  finishReason?: AgentFinishReason;
  /**
   * The value that the turn answers, as JSON: the caller gets it as `data` of the response, with the reply, and the agent's `outputKey` keeps
   * it. Default: no value; the `outputKey` keeps the text of the reply.
   */
  output?: unknown;
}

/** One turn: it reads the input, changes the session, and may say why it ended. */
export type TurnHandler = (input: AgentInput, context: TurnContext) => Promise<TurnResult | void>;

/** How a turn ended. */
export type TurnOutcome = (
  | {
      /** It ended well. */
      readonly status: 'completed';
      /** The snapshot that it was saved as; absent of an agent without a store. */
      readonly snapshotId?: string;
      /** Why it ended, as its handler said. */
      readonly finishReason?: AgentFinishReason;
      /** Why its answer is not under the agent's `outputKey`, which does not take it. All else is saved. */
      readonly error?: RuntimeError;
    }
  | {
      /** It threw, or could not be saved. */
      readonly status: 'failed';
      /** What is told of it. */
      readonly error: RuntimeError;
      /** The failed turn's own snapshot, kept for inspection. */
      readonly snapshotId?: string;
      /** The turn itself went well, its snapshot could not be saved: the reply is still worth having. */
      readonly unsaved?: true;
    }
  | {
      /** It was stopped before its end. */
      readonly status: 'aborted';
    }
) & {
  /** The value that it answered; see {@link TurnResult.output}. */
  readonly output?: unknown;
  /** The sum of what its model calls used, as far as the snapshot has it. */
  readonly usage?: GenerationUsage;
};

/** Makes one input into a turn: runs the handler, saves, reports. Never rejects. */
export type RunTurn = (input: AgentInput, handler: TurnHandler, turnIndex: number) => Promise<TurnOutcome>;

/** Options of a {@link SessionRunner} that no agent makes: for the test of a handler. */
export interface SessionRunnerOptions<State = unknown> {
  /** Where each turn is saved. Default: nowhere. */
  store?: SessionStore<State>;
  /** The snapshot that the first turn continues from. */
  lastSnapshot?: Pick<SessionSnapshot, 'snapshotId'>;
  /** A turn that throws after this aborted is aborted, not failed. */
  abortSignal?: AbortSignal;
  /** Called after each turn, also one that failed or was aborted. What it throws is ignored. */
  onEndTurn?: (snapshotId?: string, finishReason?: AgentFinishReason) => void;
  /** Genkit's agents call this when a run goes on in the background. Kept as {@link SessionRunner.onDetach}; a runner never calls it. */
  onDetach?: (snapshotId: string) => void;
  /** How to run a turn, in place of all that the options above say of saving. */
  runTurn?: RunTurn;
}

const OPTIONS = ['store', 'lastSnapshot', 'abortSignal', 'onEndTurn', 'onDetach', 'runTurn'];

/**
 * What a custom agent's function works with: the session, and {@link run}, which makes each input a turn.
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
  /** The inputs that no turn took yet; {@link run} reads them. */
  readonly inputCh: AsyncIterable<AgentInput>;
  /** {@link SessionRunnerOptions.onEndTurn} */
  onEndTurn?: (snapshotId?: string, finishReason?: AgentFinishReason) => void;
  /** {@link SessionRunnerOptions.onDetach} */
  onDetach?: (snapshotId: string) => void;
  readonly #runTurn: RunTurn;
  #lastGood: { snapshotId?: string; view: SessionView<State> };
  #turnIndex = 0;
  #lastOutcome: TurnOutcome | undefined;

  /** @throws `INVALID_ARGUMENT` for an option that there is not. */
  constructor(
    session: Session<State, User, App>,
    inputCh: AsyncIterable<AgentInput>,
    options: SessionRunnerOptions<State> = {},
  ) {
    const unknown = typeof options === 'object' ? Object.keys(options).find((name) => !OPTIONS.includes(name)) : 'that';
    if (unknown !== undefined) {
      throw invalidArgument(`A SessionRunner has no option '${unknown}'; it has ${OPTIONS.join(', ')}.`);
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

  /** How many turns of this call of the agent have completed. */
  get turnIndex(): number {
    return this.#turnIndex;
  }

  /** How the last turn ended; `undefined` before the first. */
  get lastOutcome(): TurnOutcome | undefined {
    return this.#lastOutcome;
  }

  /** Why the last turn ended. */
  get lastTurnFinishReason(): AgentFinishReason | undefined {
    const last = this.#lastOutcome;
    return last?.status === 'completed' ? last.finishReason : last?.status;
  }

  /** What the last turn failed with. */
  get lastTurnError(): RuntimeError | undefined {
    return this.#lastOutcome?.status === 'failed' ? this.#lastOutcome.error : undefined;
  }

  /** The snapshot that a failed turn leaves as the one to continue from: that of the last turn which completed, else the one begun with. */
  get lastGoodSnapshotId(): string | undefined {
    return this.#lastGood.snapshotId;
  }

  /** The state that the last completed turn left, or that the runner began with. A copy. */
  get lastGoodState(): SessionState<State> {
    return copyJson(this.#lastGood.view) as SessionState<State>;
  }

  /**
   * Runs `handler` for each input, one after the other, until the caller closes the stream. The input's message is in the session already
   * when the handler runs; when it answers, the session is saved. A turn that fails or is aborted is the last one: no error is thrown, the
   * agent's output says what happened.
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
      // The turn has ended, whatever its listener makes of it.
    }
  }

  /** @throws `FAILED_PRECONDITION`, always: Genkit's runner saves in between, here a turn is saved once, at its end. */
  maybeSnapshot(): never {
    throw failedPrecondition(`A turn is saved once, when its handler has answered. To save twice, take two turns.`);
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
