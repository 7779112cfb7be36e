import type {
  AgentInit,
  AgentInput,
  AgentOutput,
  AgentStreamChunk,
  SessionSnapshot,
  SnapshotLookup,
  SnapshotStatus,
} from './types.ts';

/** Options of {@link AgentTransport.runTurn}. */
export interface TransportCall {
  abortSignal: AbortSignal;
  /** Is told each chunk, in order and without loss, before the output is there; never after. */
  onChunk: (chunk: AgentStreamChunk) => void;
}

/** Options of {@link AgentTransport.getSnapshot}. */
export interface TransportRead {
  abortSignal?: AbortSignal;
  /** Without its state. */
  metadataOnly?: boolean;
  /** Answers when the snapshot is settled, at the latest after so many ms. An agent of another make answers at once. */
  waitMs?: number;
}

/** How an agent is reached: in process, or over HTTP. */
export interface AgentTransport {
  /** Who keeps the state; taken from the first output when absent. */
  stateManagement?: 'server' | 'client';

  /** Runs one turn. One that failed resolves too, with `finishReason: 'failed'`; only what never became a turn rejects. */
  runTurn(input: AgentInput, init: AgentInit, call: TransportCall): Promise<AgentOutput>;

  /** Reads a snapshot; `undefined` when there is none. Needs an agent with a store. */
  getSnapshot(lookup: SnapshotLookup, options?: TransportRead): Promise<SessionSnapshot | undefined>;

  /** Stops a running snapshot; answers the status it had before, `undefined` when there is none. Needs an agent with a store. */
  abort(snapshotId: string, options?: { abortSignal?: AbortSignal }): Promise<SnapshotStatus | undefined>;
}
