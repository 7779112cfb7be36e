/**
 * The agent client's surface. It has all of Genkit's own (`genkit/beta/client`), to whose interfaces these are assignable, and names none of them: a
 * client compiles where Genkit is not installed.
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

/** Which snapshot to read: an exact one, or the latest leaf of a session. */
export type SnapshotLookup =
  | {
      /** This very snapshot. */
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
   * `AgentError` of status `DEADLINE_EXCEEDED` instead.
   */
  abortSignal?: AbortSignal;
  /** The model of this turn, by its name. The agent has to allow it. */
  model?: string;
  /** Changes of the model's configuration for this turn. The agent has to allow them. */
  config?: Record<string, unknown>;
}

/** Options of a call that is not a turn. */
export interface CallOptions {
  /** Gives up; the call rejects with an `AgentError` of status `CANCELLED`. */
  abortSignal?: AbortSignal;
  /** Gives up after so many ms with `DEADLINE_EXCEEDED`. No limit unless told. */
  timeoutMs?: number;
}

/** Options of {@link DetachedTask.poll} and {@link DetachedTask.wait}. */
export interface PollOptions extends CallOptions {
  /** Pause between two reads, in ms; 1,000 unless told. */
  intervalMs?: number;
}

/**
 * A tool request that waits for an answer. Both methods build an entry of `resume`; neither sends it.
 *
 * The types are the tool's: of its input, its output, and its question.
 *
 * @example
 * type Refund = AgentInterrupt<{ orderId: string }, string, { amount: number }>;
 * const refund = chat.interrupts.find((interrupt): interrupt is Refund => interrupt.name === 'refund');
 * if (refund) await chat.resume({ restart: [refund.restart()] });
 */
export interface AgentInterrupt<Input = unknown, Output = unknown, Question extends object = Record<string, unknown>> {
  /** The tool's name. */
  name: string;
  /** Tells apart several requests of one message. */
  ref?: string;
  /** What the model calls the tool with. */
  input: Input;
  /** What the tool gave to `interrupt()`: its question to the user. Absent when the tool gave nothing. */
  question?: Question;

  /**
   * An entry of `resume.respond`: the tool does not run, the model is told `output`.
   *
   * @param metadata Kept with the response; `true` unless told.
   */
  respond(output: Output, metadata?: Record<string, unknown>): ToolResponsePart;

  /**
   * An entry of `resume.restart`: the tool runs, with its input as it was.
   *
   * @param metadata What the tool gets as `resumed`, say who approved; `true` unless told.
   */
  restart(metadata?: Record<string, unknown>): ToolRequestPart;
}

/** A completed turn. */
export interface AgentResponse<State = unknown, O = unknown> {
  /** The reply; absent when the turn ended without one. */
  readonly message?: MessageData;
  /** The text of the reply. */
  readonly text: string;
  /** What the model thought, where it tells. */
  readonly reasoning: string;
  /** The first media of the reply. */
  readonly media: Media | null;
  /**
   * The value of the reply, parsed, of an agent with an output schema. `null` of any other, of a turn that waits for the caller, and where a
   * `clientTransform` changed the words of the reply. A reply that does not fit the schema fails the turn: the `AgentError` has the status
   * `FAILED_PRECONDITION` and the `details.reason` `INVALID_OUTPUT`, and the conversation goes on from before it.
   */
  readonly data: O | null;
  /** {@link AgentResponse.data}, by the name it has in Genkit's `generate`. */
  readonly output: O | null;
  /**
   * The sum of what all model calls of the turn used, in tokens and characters: tool loops, and calls before a failure or an abort,
   * included. Empty when the model reports none, and when the agent runs on Genkit's own runtime. Calls that a tool makes count when the
   * tool reports them to `session.addUsage`; of a turn in the background the usage is in its snapshot.
   */
  readonly usage: ModelUsage;
  /** The tool requests of the reply. */
  readonly toolRequests: ToolRequestPart[];
  /** The tool requests that wait for the caller; empty unless `finishReason` is `interrupted`. */
  readonly interrupts: AgentInterrupt[];
  /** The messages of the conversation, this turn's included. */
  readonly messages: MessageData[];
  /** Why the turn ended. */
  readonly finishReason: AgentFinishReason;
  /** The same in words, where more is known. */
  readonly finishMessage?: string;
  /** The output as it came. */
  readonly raw: AgentOutput<State>;
  /** The snapshot that the turn was saved as. */
  readonly snapshotId?: string;
  /** The session of the conversation. */
  readonly sessionId?: string;
  /** The custom state after the turn. */
  readonly state?: State;
  /** The artifacts of the conversation. */
  readonly artifacts: Artifact[];

  /** Throws when the model was blocked, or answered nothing. */
  assertValid(): void;
}

/** A value of which some is not there yet. */
export type PartialOutput<O> = O extends readonly (infer Item)[]
  ? PartialOutput<Item>[]
  : O extends object
    ? { [Key in keyof O]?: PartialOutput<O[Key]> }
    : O;

/** A piece of a turn's stream. */
export interface AgentChunk<State = unknown, O = unknown> {
  /** The text of this chunk. */
  readonly text: string;
  /** What the model thought, in this chunk. */
  readonly reasoning: string;
  /** The text of the turn so far. */
  readonly accumulatedText: string;
  /** The tool requests of this chunk. */
  readonly toolRequests: ToolRequestPart[];
  /** The first value that this chunk itself has, of a model that streams values. */
  readonly data: unknown;
  /**
   * As much of the structured output as is there, of an agent with an output schema: objects and arrays grow from chunk to chunk, and are not
   * checked against the schema. `null` until the reply has a `{` or `[`. Computed on read, from the text of the reply so far.
   */
  readonly output: PartialOutput<O> | null;
  /** The first media of this chunk. */
  readonly media: Media | null;
  /** The artifact that this chunk brings. */
  readonly artifact?: Artifact;
  /** The whole custom state, where this chunk changes it: a new object each time. */
  readonly custom?: State;
  /** The chunk as it came. */
  readonly raw: AgentStreamChunk;
}

/** A snapshot as a client reads it. */
export interface AgentSnapshot<State = unknown> extends SessionSnapshot<State> {
  /**
   * The tool requests that wait for the caller, as in the response of the turn. Empty when nothing waits, and in a snapshot that was read
   * without its state. Computed on read and not enumerable: JSON and copies of the snapshot leave it out.
   */
  readonly interrupts: AgentInterrupt[];
}

/** A turn that is under way. */
export interface AgentTurn<State = unknown, O = unknown> {
  /** The chunks as they come. They can be read late, and more than once. */
  readonly stream: AsyncIterable<AgentChunk<State, O>>;
  /** Settles whether or not anybody reads `stream`. */
  readonly response: Promise<AgentResponse<State, O>>;

  /** Ends the turn: its response resolves with `finishReason: 'aborted'`. */
  abort(): void;
}

/** A turn that goes on in the background. */
export interface DetachedTask<State = unknown> {
  /** The snapshot that the task is saved as. */
  readonly snapshotId: string;

  /**
   * Yields the task's snapshot at once and then every `intervalMs`, up to and including the one that is final.
   *
   * @throws AgentError `NOT_FOUND` when the snapshot is gone, and as {@link CallOptions} say.
   */
  poll(options?: PollOptions): AsyncIterable<AgentSnapshot<State>>;

  /** The task's final snapshot; throws as `poll` does. */
  wait(options?: PollOptions): Promise<AgentSnapshot<State>>;

  /** Stops the task; answers the status it had before. */
  abort(options?: CallOptions): Promise<SnapshotStatus | undefined>;
}

/**
 * A conversation. It remembers where it stands, so that each turn continues from the one before. One turn at a time: while one is under
 * way another is refused with `FAILED_PRECONDITION`.
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
   * @param input What the user says, or all of a turn's input.
   * @throws AgentError with the status of what failed. Of a turn that went well but could not be saved `error.response` has the reply.
   */
  send(input: string | AgentInput, options?: TurnOptions): Promise<AgentResponse<State, O>>;

  /** As {@link AgentChat.send}, with the chunks as they come: `for await (const chunk of turn.stream)`. */
  sendStream(input: string | AgentInput, options?: TurnOptions): AgentTurn<State, O>;

  /**
   * Answers the interrupts of the last message, all of them at once.
   *
   * @param resume Built by {@link AgentInterrupt.respond} and {@link AgentInterrupt.restart}.
   * @throws AgentError `INVALID_ARGUMENT` when they do not fit, `FAILED_PRECONDITION` when a tool was approved before; else as `send`.
   */
  resume(resume: AgentInput['resume'], options?: TurnOptions): Promise<AgentResponse<State, O>>;

  /** As {@link AgentChat.resume}, with the chunks as they come. */
  resumeStream(resume: AgentInput['resume'], options?: TurnOptions): AgentTurn<State, O>;

  /**
   * Runs a turn in the background: answers as soon as the store has it.
   *
   * @throws AgentError as `send`.
   */
  detach(input: string | AgentInput, options?: TurnOptions): Promise<DetachedTask<State>>;

  /** Stops the turn that is under way, else the run of the chat's snapshot; answers the status that this had before. */
  abort(): Promise<SnapshotStatus | undefined>;
}

/** Options of a read. */
export interface ReadOptions {
  /** The snapshot without its state: cheap, however large that is. */
  metadataOnly?: boolean;
}

/** Options of {@link AgentAPI.waitForSnapshot}. */
export interface WaitOptions extends CallOptions, ReadOptions {}

/** An agent as its callers see it, in process and remote alike. */
export interface AgentAPI<State = unknown, O = unknown> {
  /** Begins a conversation, or attaches to the one that `init` names. Nothing is sent before the first turn. */
  chat(init?: AgentInit<State>): AgentChat<State, O>;

  /**
   * Reads a snapshot and answers a conversation that continues from it, with its messages.
   *
   * @throws AgentError `NOT_FOUND` when there is no such snapshot.
   */
  loadChat(lookup: SnapshotLookup): Promise<AgentChat<State, O>>;

  /** Reads a snapshot as a client sees it; `undefined` when there is none. Takes its id, or which one it is. */
  getSnapshot(lookup: string | SnapshotLookup, options?: ReadOptions): Promise<AgentSnapshot<State> | undefined>;

  /**
   * The snapshot once it is settled: completed, failed, aborted or expired. The agent's side watches its store; nothing is asked again and
   * again, except of a server that can't wait.
   *
   * @throws AgentError `NOT_FOUND` when there is no such snapshot, and as {@link CallOptions} say.
   */
  waitForSnapshot(snapshotId: string, options?: WaitOptions): Promise<AgentSnapshot<State>>;

  /** Stops the run of this snapshot; answers the status that it had before. */
  abort(snapshotId: string): Promise<SnapshotStatus | undefined>;
}
