import { TurnChunk } from './chunk.ts';
import type { Conversation } from './conversation.ts';
import { AgentError, describeError, readErrorRecord } from '../errors.ts';
import { causeOf } from '../error-cause.ts';
import { ReplayStream } from '../http/replay-stream.ts';
import { TurnResponse } from './response.ts';
import { followSignal } from '../signals.ts';
import type { AgentTransport } from '../transport.ts';
import type { AgentChunk, AgentInput, AgentOutput, AgentStreamChunk, AgentTurn, TurnOptions } from '../types.ts';

/** What a {@link Turn} works with. */
export interface TurnSetting<State> {
  transport: AgentTransport;
  conversation: Conversation<State>;
  input: AgentInput;
  options: TurnOptions;
  /** Called when the turn is over, before its response settles. */
  onEnd: () => void;
}

/**
 * A turn under way. It takes each chunk as it comes: the response settles and the conversation moves on whether or not anybody reads
 * {@link stream}, and `stream` can be read at any time, from the beginning.
 */
export class Turn<State, O = unknown> implements AgentTurn<State, O> {
  readonly stream: AsyncIterable<AgentChunk<State, O>>;
  readonly response: Promise<TurnResponse<State, O>>;
  readonly #chunks = new ReplayStream<AgentChunk<State, O>>();
  readonly #controller = new AbortController();
  readonly #conversation: Conversation<State>;
  /** What the model has said so far: in this turn, and in its current message. */
  #said = { turn: '', reply: '' };
  /** Which message of the turn that is. */
  #index: number | undefined;
  /** A chunk was none; the turn fails with this when it is over. */
  #unreadable: { error: unknown } | undefined;
  /** Why a change of the custom state did not fit; later changes are then left alone. */
  #misfit: unknown;

  constructor(setting: TurnSetting<State>) {
    this.#conversation = setting.conversation;
    this.stream = this.#chunks;
    this.response = this.#run(setting);
    // This also marks a rejection as handled: whoever reads only the stream gets it there.
    this.response.then(
      () => this.#chunks.close(),
      (error: unknown) => this.#chunks.fail(error),
    );
  }

  abort(): void {
    this.#controller.abort();
  }

  async #run(setting: TurnSetting<State>): Promise<TurnResponse<State, O>> {
    let unfollow = () => {};
    let before = this.#conversation.checkpoint();
    let output: AgentOutput<State>;
    let cause: unknown;
    try {
      unfollow = followSignal(setting.options.abortSignal, this.#controller);
      if (this.#conversation.isBehind) {
        await this.#conversation.catchUp(setting.transport, this.#controller.signal);
        before = this.#conversation.checkpoint();
      }
      const init = this.#conversation.nextInit();
      this.#conversation.begin(setting.input);
      const { signal: abortSignal } = this.#controller;
      abortSignal.throwIfAborted();
      const { input, transport } = setting;
      output = (await transport.runTurn(input, init, { abortSignal, onChunk: this.#onChunk })) as AgentOutput<State>;
      this.#assertRead();
    } catch (error) {
      output = this.#outputWithout(error);
      cause = error;
    } finally {
      unfollow();
    }
    try {
      this.#conversation.settle(output, before);
    } finally {
      setting.onEnd();
    }
    return this.#judge(output, cause);
  }

  /** Never throws: it is called in the middle of the transport's work, and may be of the agent's. */
  readonly #onChunk = (raw: AgentStreamChunk): void => {
    if (this.#unreadable) {
      return;
    }
    try {
      const { turn, reply } = this.#said;
      const index = raw.modelChunk?.index ?? this.#index;
      const chunk = new TurnChunk<State, O>(
        raw,
        { turn, reply: index === this.#index ? reply : '' },
        this.#change(raw),
      );
      this.#index = index;
      this.#said = { turn: chunk.accumulatedText, reply: chunk.replyText };
      this.#chunks.push(chunk);
    } catch (error) {
      this.#unreadable = { error };
    }
  };

  /** The custom state after the chunk; `undefined` when the chunk does not change it. */
  #change({ customPatch }: AgentStreamChunk): State | undefined {
    if (!customPatch || this.#misfit !== undefined) {
      return undefined;
    }
    try {
      this.#conversation.change(customPatch);
      return this.#conversation.custom;
    } catch (error) {
      this.#misfit = error;
      return undefined;
    }
  }

  #assertRead(): void {
    if (this.#unreadable) {
      throw this.#unreadable.error;
    }
  }

  /** The output of a turn of which none arrived. */
  #outputWithout(error: unknown): AgentOutput<State> {
    const { signal } = this.#controller;
    const failure = signal.aborted ? describeError(signal.reason) : describeError(error);
    const wanted = signal.aborted && failure.status !== 'DEADLINE_EXCEEDED';
    return wanted ? { finishReason: 'aborted' } : { finishReason: 'failed', error: failure };
  }

  /** The response of a turn that went well; throws for one that did not. */
  #judge(output: AgentOutput<State>, cause: unknown): TurnResponse<State, O> {
    const response = new TurnResponse<State, O>(output, this.#conversation.aftermath());
    const { snapshotId } = this.#conversation;
    if (output.finishReason === 'failed') {
      const failure = readErrorRecord(output.error, 'UNKNOWN');
      const thrown = cause ?? causeOf(output.error);
      throw new AgentError<State>({ ...failure, state: response.state, snapshotId, response, cause: thrown });
    }
    if (this.#misfit !== undefined) {
      throw new AgentError<State>({
        status: 'DATA_LOSS',
        message:
          'The turn went through, but a change of the custom state did not fit the state that this client has. ' +
          'The state here is the one before that change; load the chat again, or send another turn.',
        state: response.state,
        snapshotId,
        response,
        cause: this.#misfit,
      });
    }
    return response;
  }
}

/** A turn that never started. */
export function refusedTurn<State, O>(refusal: AgentError): AgentTurn<State, O> {
  const stream = new ReplayStream<AgentChunk<State, O>>();
  stream.fail(refusal);
  const refused = async (): Promise<TurnResponse<State, O>> => {
    throw refusal;
  };
  const response = refused();
  response.catch(() => {});
  return { stream, response, abort: () => {} };
}
