import { TurnChunk } from './chunk.ts';
import type { Conversation } from './conversation.ts';
import { AgentError, describeError, readErrorRecord } from '../errors.ts';
import { causeOf } from '../error-cause.ts';
import { ReplayStream } from './replay-stream.ts';
import { TurnResponse } from './response.ts';
import { followSignal } from '../signals.ts';
import type { AgentTransport, TransportCall } from '../transport.ts';
import type {
  AgentChunk,
  AgentInit,
  AgentInput,
  AgentOutput,
  AgentStreamChunk,
  AgentTurn,
  TurnOptions,
} from '../types.ts';

export interface ChatTurnSetting<State> {
  transport: AgentTransport;
  conversation: Conversation<State>;
  input: AgentInput;
  options: TurnOptions;
  /** Set if the turn is already running: its stream is read, and nothing is sent. */
  streamId?: string;
  /** Called when the turn has ended, before its response settles. */
  onEnd: () => void;
}

/**
 * A running turn. It reads each chunk as it arrives: the response settles and the conversation changes even if {@link stream} is not read.
 * `stream` can be read at any time, from the beginning.
 */
export class Turn<State, O = unknown> implements AgentTurn<State, O> {
  readonly stream: AsyncIterable<AgentChunk<State, O>>;
  readonly response: Promise<TurnResponse<State, O>>;
  readonly #chunks = new ReplayStream<AgentChunk<State, O>>();
  readonly #controller = new AbortController();
  readonly #conversation: Conversation<State>;
  readonly #transport: AgentTransport;
  /** The id of the kept stream, once it is known. */
  #streamId: string | undefined;
  /** The model's text so far: in this turn, and in its current message. */
  #text = { turn: '', reply: '' };
  /** The index of the model's current message in the turn. */
  #index: number | undefined;
  /** The error of an invalid chunk; the turn fails with it at its end. */
  #chunkError: AgentError | undefined;
  /** The error of a custom state patch that did not apply; later patches are then ignored. */
  #patchError: unknown;

  constructor(setting: ChatTurnSetting<State>) {
    this.#conversation = setting.conversation;
    this.#transport = setting.transport;
    this.#streamId = setting.streamId;
    this.stream = this.#chunks;
    this.response = this.#run(setting);
    // This also marks a rejection as handled: a caller that reads only the stream gets the error there.
    this.#chunks.endWith(this.response);
  }

  abort(): void {
    this.#controller.abort();
  }

  async stop(): Promise<void> {
    const isStopping = this.#streamId !== undefined && (await this.#transport.stopTurn?.(this.#streamId));
    if (!isStopping) {
      this.abort();
    }
  }

  async #run(setting: ChatTurnSetting<State>): Promise<TurnResponse<State, O>> {
    let unfollow = () => {};
    let before = this.#conversation.turnStart();
    let output: AgentOutput<State>;
    let cause: unknown;
    try {
      unfollow = followSignal(setting.options.abortSignal, this.#controller);
      if (this.#conversation.isStale) {
        await this.#conversation.refresh(setting.transport, this.#controller.signal);
        before = this.#conversation.turnStart();
      }
      const init = this.#conversation.nextInit();
      this.#conversation.begin(setting.input);
      const { signal: abortSignal } = this.#controller;
      abortSignal.throwIfAborted();
      output = (await this.#callAgent(setting, init)) as AgentOutput<State>;
      if (this.#chunkError) {
        throw this.#chunkError;
      }
    } catch (error) {
      output = this.#outputWithout(error);
      cause = error;
    } finally {
      unfollow();
    }
    try {
      this.#conversation.end(output, before);
    } finally {
      setting.onEnd();
    }
    return this.#toResponse(output, cause);
  }

  #callAgent({ transport, input, options, streamId }: ChatTurnSetting<State>, init: AgentInit): Promise<AgentOutput> {
    const call: TransportCall = {
      abortSignal: this.#controller.signal,
      onChunk: this.#onChunk,
      onStreamId: (id) => {
        this.#streamId = id;
        options.onStreamId?.(id);
      },
      onReconnecting: options.onReconnecting,
    };
    if (streamId === undefined) {
      return transport.runTurn(input, init, call);
    }
    if (!transport.followTurn) {
      throw new AgentError({ status: 'FAILED_PRECONDITION', message: 'Only streams of agents over HTTP are kept.' });
    }
    return transport.followTurn(streamId, call);
  }

  /** Never throws, because the transport calls it; in process even during the agent's work. */
  readonly #onChunk = (raw: AgentStreamChunk): void => {
    if (this.#chunkError) {
      return;
    }
    try {
      const { turn, reply } = this.#text;
      const index = raw.modelChunk?.index ?? this.#index;
      const chunk = new TurnChunk<State, O>(
        raw,
        { turn, reply: index === this.#index ? reply : '' },
        this.#change(raw),
      );
      this.#index = index;
      this.#text = { turn: chunk.accumulatedText, reply: chunk.replyText };
      this.#chunks.push(chunk);
    } catch (cause) {
      this.#chunkError = new AgentError({ status: 'UNKNOWN', message: 'A chunk of the turn is invalid.', cause });
    }
  };

  /** The custom state after the chunk; `undefined` when the chunk does not change it. */
  #change({ customPatch }: AgentStreamChunk): State | undefined {
    if (!customPatch || this.#patchError !== undefined) {
      return undefined;
    }
    try {
      this.#conversation.change(customPatch);
      return this.#conversation.custom;
    } catch (error) {
      this.#patchError = error;
      return undefined;
    }
  }

  /** The output of a turn whose output did not arrive. */
  #outputWithout(error: unknown): AgentOutput<State> {
    const { signal } = this.#controller;
    const failure = describeError(signal.aborted ? signal.reason : error);
    const isIntended = signal.aborted && failure.status !== 'DEADLINE_EXCEEDED';
    return isIntended ? { finishReason: 'aborted' } : { finishReason: 'failed', error: failure };
  }

  /** The response of a completed turn; throws for any other. */
  #toResponse(output: AgentOutput<State>, cause: unknown): TurnResponse<State, O> {
    const response = new TurnResponse<State, O>(output, this.#conversation);
    const { snapshotId } = this.#conversation;
    if (output.finishReason === 'failed') {
      const failure = readErrorRecord(output.error, 'UNKNOWN');
      const thrown = cause ?? causeOf(output.error);
      throw new AgentError<State>({ ...failure, state: response.state, snapshotId, response, cause: thrown });
    }
    if (this.#patchError !== undefined) {
      throw new AgentError<State>({
        status: 'DATA_LOSS',
        message: 'The turn completed, but a patch of its state failed. Load the chat again.',
        state: response.state,
        snapshotId,
        response,
        cause: this.#patchError,
      });
    }
    return response;
  }
}

/** A turn that never started. */
export function refusedTurn<State, O>(refusal: AgentError): AgentTurn<State, O> {
  const stream = new ReplayStream<AgentChunk<State, O>>();
  const response = Promise.reject<TurnResponse<State, O>>(refusal);
  stream.endWith(response);
  return { stream, response, abort: () => {}, stop: async () => {} };
}
