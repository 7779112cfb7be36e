/**
 * The types of the agent client. They are assignable to those of Genkit (`genkit/beta/client`) and do not import them, so that a client
 * compiles without Genkit.
 */
import type {
  AgentFinishReason,
  AgentInit,
  AgentInput,
  AgentOutput,
  AgentStreamChunk,
  Artifact,
  Media,
  MessageData,
  ModelUsage,
  SessionSnapshot,
  ToolRequestPart,
  ToolResponsePart,
} from './wire.ts';

export type * from './wire.ts';

/** A snapshot's status. */
export type SnapshotStatus = NonNullable<SessionSnapshot['status']>;

/** The snapshot to read: by its id, or the latest leaf of a session. */
export type SnapshotLookup =
  | {
      /** The snapshot with this id. */
      snapshotId: string;
    }
  | {
      /** The latest leaf of this session. */
      sessionId: string;
    };

/** Options of a turn. */
export interface TurnOptions {
  /**
   * Ends the turn: its response then resolves with `finishReason: 'aborted'`. The signal of `AbortSignal.timeout()` ends it with an
   * `AgentError` of status `DEADLINE_EXCEEDED` instead. Default: none.
   */
  abortSignal?: AbortSignal;
  /** The name of the model for this turn. The agent has to allow it (`turnOverrides`). Default: the agent's model. */
  model?: string;
  /** Changes of the model's configuration for this turn. The agent has to allow them (`turnOverrides`). Default: no changes. */
  config?: Record<string, unknown>;
  /**
   * Called with the id of the turn's stream if the server keeps it. With the id, {@link AgentChat.followStream} reads the turn in another
   * page, or in this one after a reload. Default: none.
   */
  onStreamId?: (streamId: string) => void;
  /** Called with `true` when the connection broke and is being opened again, and with `false` when it is open again. Default: none. */
  onReconnecting?: (isReconnecting: boolean) => void;
}

/** Options of a call that is not a turn. */
export interface CallOptions {
  /** Cancels the call, which rejects with an `AgentError` of status `CANCELLED`. Default: none. */
  abortSignal?: AbortSignal;
  /** The time limit of the call in ms; after it the call rejects with `DEADLINE_EXCEEDED`. Default: no limit. */
  timeoutMs?: number;
}

/** Options of {@link DetachedTask.poll} and {@link DetachedTask.wait}. */
export interface PollOptions extends CallOptions {
  /** Pause between two reads, in ms. Default: 1,000. */
  intervalMs?: number;
}

/**
 * A tool request that waits for an answer. Both methods build an entry of `resume`; neither sends it.
 *
 * The type parameters are those of the tool: its input, its output, and its question.
 *
 * @example
 * import type { AgentInterrupt } from 'genkitx-agents/client';
 *
 * type Refund = AgentInterrupt<{ orderId: string }, string, { amount: number }>;
 * const refund = chat.interrupts.find((interrupt): interrupt is Refund => interrupt.name === 'refund');
 * if (refund) await chat.resume({ restart: [refund.restart()] });
 */
export interface AgentInterrupt<Input = unknown, Output = unknown, Question extends object = Record<string, unknown>> {
  /** The tool's name. */
  name: string;
  /** Distinguishes several requests in one message. */
  ref?: string;
  /** The tool's input. */
  input: Input;
  /** The argument of the tool's `interrupt()`: its question to the user. Missing when the tool passed none. */
  question?: Question;

  /**
   * An entry of `resume.respond`: the tool does not run, and the model gets `output`.
   *
   * @param metadata Stored with the response. Default: `true`.
   */
  respond(output: Output, metadata?: Record<string, unknown>): ToolResponsePart;

  /**
   * An entry of `resume.restart`: the tool runs with the same input.
   *
   * @param metadata The value of the tool's `resumed`, for example the approver. Default: `true`.
   */
  restart(metadata?: Record<string, unknown>): ToolRequestPart;
}

/** A completed turn. */
export interface AgentResponse<State = unknown, O = unknown> {
  /** The reply. Missing when the turn has none. */
  readonly message?: MessageData;
  /** The text of the reply. */
  readonly text: string;
  /** The model's reasoning, if it returns any. */
  readonly reasoning: string;
  /** The first media of the reply. */
  readonly media: Media | null;
  /**
   * The parsed value of the reply of an agent with an output schema. `null` for other agents, for a turn that waits for the caller, and
   * when a `clientTransform` changed the text of the reply. A reply that does not match the schema fails the turn: the `AgentError` has the
   * status `FAILED_PRECONDITION` and the `details.reason` `INVALID_OUTPUT`, and the conversation continues from before the turn.
   */
  readonly data: O | null;
  /** Same as {@link AgentResponse.data}, with the name of Genkit's `generate`. */
  readonly output: O | null;
  /**
   * The summed usage of all model calls of the turn, in tokens and characters, including tool loops and calls before a failure or an abort.
   * Empty when the model reports none, and when the agent runs on Genkit's runtime. Model calls of a tool count when the tool reports them
   * to `session.addUsage`. The usage of a background turn is in its snapshot.
   */
  readonly usage: ModelUsage;
  /** The tool requests of the reply. */
  readonly toolRequests: ToolRequestPart[];
  /** The tool requests that wait for the caller. Empty unless `finishReason` is `interrupted`. */
  readonly interrupts: AgentInterrupt[];
  /** The messages of the conversation, including those of this turn. */
  readonly messages: MessageData[];
  /** Why the turn ended. */
  readonly finishReason: AgentFinishReason;
  /** A message about the reason, if there is one. */
  readonly finishMessage?: string;
  /** The output as received. */
  readonly raw: AgentOutput<State>;
  /** The snapshot of the turn. */
  readonly snapshotId?: string;
  /** The session of the conversation. */
  readonly sessionId?: string;
  /** The custom state after the turn. */
  readonly state?: State;
  /** The artifacts of the conversation. */
  readonly artifacts: Artifact[];

  /** Throws when the model was blocked or returned no reply. */
  assertValid(): void;
}

/** A value that is still incomplete. */
export type PartialOutput<O> = O extends readonly (infer Item)[]
  ? PartialOutput<Item>[]
  : O extends object
    ? { [Key in keyof O]?: PartialOutput<O[Key]> }
    : O;

/** A piece of a turn's stream. */
export interface AgentChunk<State = unknown, O = unknown> {
  /** The text of this chunk. */
  readonly text: string;
  /** The model's reasoning in this chunk. */
  readonly reasoning: string;
  /** The text of the turn so far. */
  readonly accumulatedText: string;
  /** The tool requests of this chunk. */
  readonly toolRequests: ToolRequestPart[];
  /** The first `data` value in this chunk, from a model that streams values. */
  readonly data: unknown;
  /**
   * The structured output received so far, of an agent with an output schema. Objects and arrays grow from chunk to chunk and are not
   * checked against the schema. `null` until the reply has a `{` or `[`. Computed on read, from the text of the reply so far.
   */
  readonly output: PartialOutput<O> | null;
  /** The first media of this chunk. */
  readonly media: Media | null;
  /** The artifact in this chunk. */
  readonly artifact?: Artifact;
  /** The whole custom state, if this chunk changes it: a new object that shares its unchanged parts with the one before. */
  readonly custom?: State;
  /** The chunk as received. */
  readonly raw: AgentStreamChunk;
}

/** A snapshot as returned to clients. */
export interface AgentSnapshot<State = unknown> extends SessionSnapshot<State> {
  /**
   * The tool requests that wait for the caller, as in the response of the turn. Empty when none waits, and in a snapshot that was read
   * without its state. Computed on read and not enumerable: JSON and copies of the snapshot leave it out.
   */
  readonly interrupts: AgentInterrupt[];
}

/** A running turn. */
export interface AgentTurn<State = unknown, O = unknown> {
  /** The chunks as they arrive. They can be read late, and more than once. */
  readonly stream: AsyncIterable<AgentChunk<State, O>>;
  /** Settles even if `stream` is not read. */
  readonly response: Promise<AgentResponse<State, O>>;

  /** Aborts the turn: its response resolves with `finishReason: 'aborted'`. */
  abort(): void;

  /**
   * Asks the agent to stop. The stream then ends with the saved part of the turn, whose snapshot is in `response`. If the server can't be
   * asked, it does the same as {@link AgentTurn.abort}.
   */
  stop(): Promise<void>;
}

/** A turn that runs in the background. */
export interface DetachedTask<State = unknown> {
  /** The snapshot of the task. */
  readonly snapshotId: string;

  /**
   * Yields the task's snapshot at once and then every `intervalMs`, up to and including the terminal one.
   *
   * @throws AgentError `NOT_FOUND` when the snapshot no longer exists, and as described at {@link CallOptions}.
   */
  poll(options?: PollOptions): AsyncIterable<AgentSnapshot<State>>;

  /** Returns the task's terminal snapshot; throws as `poll` does. */
  wait(options?: PollOptions): Promise<AgentSnapshot<State>>;

  /** Aborts the task. Returns the status before. */
  abort(options?: CallOptions): Promise<SnapshotStatus | undefined>;
}

/**
 * A conversation. Each turn continues from the one before. A chat runs one turn at a time: while one is running, another is refused with
 * `FAILED_PRECONDITION`.
 */
export interface AgentChat<State = unknown, O = unknown> {
  /** The snapshot that the next turn continues from. */
  readonly snapshotId?: string;
  /** The session of the conversation. */
  readonly sessionId?: string;
  /** The custom state. */
  readonly state?: State;
  /** The messages so far. */
  readonly messages: MessageData[];
  /** The artifacts so far. */
  readonly artifacts: Artifact[];
  /**
   * The tool requests that wait for the caller: those of the last turn or, after `loadChat`, of the snapshot. Answer them all at once with
   * {@link AgentChat.resume}.
   */
  readonly interrupts: AgentInterrupt[];

  /**
   * Runs a turn to its end.
   *
   * @param input The user's text, or a whole turn input.
   * @throws AgentError with the status of the failure. If only the save failed, `error.response` has the reply.
   */
  send(input: string | AgentInput, options?: TurnOptions): Promise<AgentResponse<State, O>>;

  /** Like {@link AgentChat.send}, with the chunks as they arrive: `for await (const chunk of turn.stream)`. */
  sendStream(input: string | AgentInput, options?: TurnOptions): AgentTurn<State, O>;

  /**
   * Answers the interrupts of the last message, all of them at once.
   *
   * @param resume Built by {@link AgentInterrupt.respond} and {@link AgentInterrupt.restart}.
   * @throws AgentError `INVALID_ARGUMENT` when the entries do not match the interrupts, `FAILED_PRECONDITION` when a tool was approved
   *   before; otherwise as `send`.
   */
  resume(resume: AgentInput['resume'], options?: TurnOptions): Promise<AgentResponse<State, O>>;

  /** Like {@link AgentChat.resume}, with the chunks as they arrive. */
  resumeStream(resume: AgentInput['resume'], options?: TurnOptions): AgentTurn<State, O>;

  /**
   * Reads a turn that is running, or ended a short while ago, from its first chunk. Nothing is sent to the model. The chat has to be at the
   * snapshot that the turn continues from.
   *
   * @param streamId The id that `onStreamId` got.
   * @param input The input of the turn, which is in no chunk. Default: none.
   * @throws AgentError `UNAVAILABLE` when the server has no such stream, `FAILED_PRECONDITION` for an agent that is not reached over HTTP.
   */
  followStream(streamId: string, input?: AgentInput, options?: TurnOptions): AgentTurn<State, O>;

  /**
   * Runs a turn in the background. Resolves as soon as the turn is stored.
   *
   * @throws AgentError as `send`.
   */
  detach(input: string | AgentInput, options?: TurnOptions): Promise<DetachedTask<State>>;

  /** Aborts the running turn, or else the run of the chat's snapshot. Returns the status before. */
  abort(): Promise<SnapshotStatus | undefined>;
}

/** Options of a read. */
export interface ReadOptions {
  /** Reads the snapshot without its state, which is cheap for a state of any size. Default: `false`. */
  metadataOnly?: boolean;
}

/** Options of {@link AgentAPI.waitForSnapshot}. */
export interface WaitOptions extends CallOptions, ReadOptions {}

/** The API of an agent for its callers, in process and over HTTP. */
export interface AgentAPI<State = unknown, O = unknown> {
  /** Starts a conversation, or continues the one that `init` names. Sends nothing before the first turn. */
  chat(init?: AgentInit<State>): AgentChat<State, O>;

  /**
   * Reads a snapshot and returns a conversation that continues from it, with its messages. By `sessionId`: its latest snapshot, unless that
   * turn failed or has expired; then the one before it.
   *
   * @throws AgentError `NOT_FOUND` when there is no such snapshot.
   */
  loadChat(lookup: SnapshotLookup): Promise<AgentChat<State, O>>;

  /** Reads a snapshot, by its id or by a lookup; `undefined` when there is none. */
  getSnapshot(lookup: string | SnapshotLookup, options?: ReadOptions): Promise<AgentSnapshot<State> | undefined>;

  /**
   * Waits until the snapshot is completed, failed, aborted or expired, and returns it. The agent watches its store; only servers that can
   * not wait are polled.
   *
   * @throws AgentError `NOT_FOUND` when there is no such snapshot, and as described at {@link CallOptions}.
   */
  waitForSnapshot(snapshotId: string, options?: WaitOptions): Promise<AgentSnapshot<State>>;

  /** Aborts the run of this snapshot. Returns the status before. */
  abort(snapshotId: string): Promise<SnapshotStatus | undefined>;
}
