import { readInput, readOptions } from '../check.ts';
import type { Conversation } from './conversation.ts';
import { BackgroundTask } from './detached-task.ts';
import { AgentError, toAgentError, withAgentErrors } from '../errors.ts';
import { interruptsOf } from './interrupt.ts';
import type { AgentTransport } from '../transport.ts';
import { refusedTurn, Turn } from './chat-turn.ts';
import type {
  AgentChat,
  AgentInput,
  AgentInterrupt,
  AgentResponse,
  AgentTurn,
  Artifact,
  DetachedTask,
  MessageData,
  SnapshotStatus,
  TurnOptions,
} from '../types.ts';

/** A conversation over a transport, one turn at a time. */
export class Chat<State, O = unknown> implements AgentChat<State, O> {
  readonly #transport: AgentTransport;
  readonly #conversation: Conversation<State>;
  #running: Turn<State, O> | undefined;
  /** Also true while the turn is being created: it may end before its constructor returns. */
  #isRunning = false;

  constructor(transport: AgentTransport, conversation: Conversation<State>) {
    this.#transport = transport;
    this.#conversation = conversation;
  }

  get snapshotId(): string | undefined {
    return this.#conversation.snapshotId;
  }

  get sessionId(): string | undefined {
    return this.#conversation.sessionId;
  }

  get state(): State | undefined {
    return this.#conversation.custom;
  }

  /** The messages of this chat; after `loadChat` also the earlier ones. */
  get messages(): MessageData[] {
    return this.#conversation.messages;
  }

  get artifacts(): Artifact[] {
    return this.#conversation.artifacts;
  }

  get interrupts(): AgentInterrupt[] {
    return interruptsOf(this.#conversation.messages.at(-1));
  }

  async send(input: string | AgentInput, options?: TurnOptions): Promise<AgentResponse<State, O>> {
    return this.sendStream(input, options).response;
  }

  sendStream(given: string | AgentInput, options?: TurnOptions): AgentTurn<State, O> {
    return this.#start(given, options);
  }

  followStream(streamId: string, input: AgentInput = {}, options?: TurnOptions): AgentTurn<State, O> {
    return this.#start(input, options, streamId);
  }

  #start(given: string | AgentInput, givenOptions?: TurnOptions, streamId?: string): AgentTurn<State, O> {
    let input: AgentInput;
    let options: TurnOptions;
    try {
      options = readOptions(givenOptions);
      input = withChoice(readInput(given), options);
      if (this.#isRunning) {
        throw new AgentError({
          status: 'FAILED_PRECONDITION',
          message: 'This chat is running a turn. Wait for it, or open another chat.',
        });
      }
    } catch (error) {
      return refusedTurn(toAgentError(error));
    }
    this.#isRunning = true;
    const turn = new Turn<State, O>({
      transport: this.#transport,
      conversation: this.#conversation,
      input,
      options,
      streamId,
      onEnd: () => {
        this.#isRunning = false;
        this.#running = undefined;
      },
    });
    if (this.#isRunning) {
      this.#running = turn;
    }
    return turn;
  }

  resume(resume: AgentInput['resume'], options?: TurnOptions): Promise<AgentResponse<State, O>> {
    return this.send({ resume }, options);
  }

  resumeStream(resume: AgentInput['resume'], options?: TurnOptions): AgentTurn<State, O> {
    return this.sendStream({ resume }, options);
  }

  async detach(input: string | AgentInput, options?: TurnOptions): Promise<DetachedTask<State>> {
    const response = await this.send({ ...readInput(input), detach: true }, options);
    if (response.snapshotId === undefined) {
      throw new AgentError<State>({
        status: 'FAILED_PRECONDITION',
        message: 'The agent returned no snapshot. Only agents with a store run turns in the background.',
        response,
      });
    }
    return new BackgroundTask<State>(response.snapshotId, this.#transport);
  }

  /** Aborts the running turn, or else the background run of this chat. Returns the status before. */
  async abort(): Promise<SnapshotStatus | undefined> {
    if (this.#running) {
      this.#running.abort();
      return 'pending';
    }
    const { snapshotId } = this;
    if (snapshotId === undefined) {
      return undefined;
    }
    return withAgentErrors(async () => this.#transport.abort(snapshotId));
  }
}

function withChoice(input: AgentInput, { model, config }: TurnOptions): AgentInput {
  return { ...input, ...(model !== undefined && { model }), ...(config && { config }) };
}
