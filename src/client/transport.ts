import type {
  AgentInit,
  AgentInput,
  AgentOutput,
  AgentStreamChunk,
  SessionSnapshot,
  SnapshotLookup,
  SnapshotStatus,
} from './types.ts';

/** What {@link AgentTransport.runTurn} answers. */
export interface TransportTurn {
  /** The chunks in order and without loss; ends, or throws, when the turn ends, however it does. */
  stream: AsyncIterable<AgentStreamChunk>;
  /** The turn's output. A turn that failed resolves too, with `finishReason: 'failed'`; only what never became a turn rejects. */
  output: Promise<AgentOutput>;
}

/** Options of {@link AgentTransport.getSnapshot}. */
export interface TransportRead {
  abortSignal?: AbortSignal;
  /** Without its state. */
  metadataOnly?: boolean;
  /** Answers when the snapshot is settled, at the latest after so many ms. An agent of another make answers at once. */
  waitMs?: number;
}

/** How an agent is reached: in process, or over HTTP. The shape is Genkit's own. */
export interface AgentTransport {
  /** Who keeps the state; taken from the first output when absent. */
  stateManagement?: 'server' | 'client';

  /** Runs one turn. */
  runTurn(input: AgentInput, init: AgentInit, options: { abortSignal: AbortSignal }): TransportTurn;

  /** Reads a snapshot; `undefined` when there is none. Needs an agent with a store. */
  getSnapshot(lookup: SnapshotLookup, options?: TransportRead): Promise<SessionSnapshot | undefined>;

  /** Stops a running snapshot; answers the status it had before, `undefined` when there is none. Needs an agent with a store. */
  abort(snapshotId: string, options?: { abortSignal?: AbortSignal }): Promise<SnapshotStatus | undefined>;
}
