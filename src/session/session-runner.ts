import type { GenerationUsage } from 'genkit';
import type { AgentFinishReason, AgentInput, AgentOutput, Artifact, MessageData, SessionState } from 'genkit/beta';
import type { ScopeRecord } from '../store/contract.ts';
import type { ScopedState } from './state/scoped-state.ts';
import type { PlainKeys, Session } from './session.ts';

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
  readonly #runTurn: RunTurn;
  #turnIndex = 0;
  #lastOutcome: TurnOutcome | undefined;

  /**
   * @param runTurn How to run a turn; unless told the handler is called with the input and nothing is saved, which is what the test of a
   *   handler wants.
   */
  constructor(session: Session<State, User, App>, inputCh: AsyncIterable<AgentInput>, runTurn?: RunTurn) {
    this.session = session;
    this.inputCh = inputCh;
    this.#runTurn = runTurn ?? unsavedTurn(session);
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

  /**
   * Runs `handler` for each input, one after the other, until the caller closes the stream. The input's message is in the session already
   * when the handler runs; when it answers, the session is saved. A turn that fails or is aborted is the last one: no error is thrown, the
   * agent's output says what happened.
   */
  async run(handler: TurnHandler): Promise<void> {
    for await (const input of this.inputCh) {
      this.#lastOutcome = await this.#runTurn(input, handler, this.#turnIndex);
      if (this.#lastOutcome.status !== 'completed') return;
      this.#turnIndex++;
    }
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

function unsavedTurn<State, User, App>(session: Session<State, User, App>): RunTurn {
  return async (input, handler, turnIndex) => {
    if (input.message) session.addMessages([input.message]);
    const result = await handler(input, { snapshotId: globalThis.crypto.randomUUID(), turnIndex });
    return { status: 'completed', ...(result?.finishReason && { finishReason: result.finishReason }) };
  };
}
