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
  /** Called with each chunk, in order, before the output resolves; never after it. */
  onChunk: (chunk: AgentStreamChunk) => void;
  /** Called with the id of the turn's stream, if it is kept. */
  onStreamId?: (streamId: string) => void;
  /** Called with `true` when the connection broke and is being opened again, and with `false` when it is open again. */
  onReconnecting?: (isReconnecting: boolean) => void;
}

/** Options of {@link AgentTransport.getSnapshot}. */
export interface TransportRead {
  abortSignal?: AbortSignal;
  /** Without its state. */
  metadataOnly?: boolean;
  /** Waits until the snapshot is terminal, for at most this time in ms. Foreign agents do not wait. */
  waitMs?: number;
}

/** How an agent is reached: in process, or over HTTP. */
export interface AgentTransport {
  /** Whether the server or the client keeps the state. Default: detected from the first output. */
  stateManagement?: 'server' | 'client';

  /** Runs one turn. A failed turn resolves with `finishReason: 'failed'`; the promise rejects only if no turn began. */
  runTurn(input: AgentInput, init: AgentInit, call: TransportCall): Promise<AgentOutput>;

  /** Reads a running turn from its first chunk. Missing where streams are not kept. */
  followTurn?(streamId: string, call: TransportCall): Promise<AgentOutput>;

  /** Aborts a turn whose stream is kept. The stream then ends with the saved outcome. Returns whether the server knows the turn. */
  stopTurn?(streamId: string): Promise<boolean>;

  /** Reads a snapshot; `undefined` when there is none. Needs an agent with a store. */
  getSnapshot(lookup: SnapshotLookup, options?: TransportRead): Promise<SessionSnapshot | undefined>;

  /** Aborts the run of a snapshot. Returns the status before; `undefined` when there is no such snapshot. Needs an agent with a store. */
  abort(snapshotId: string, options?: { abortSignal?: AbortSignal }): Promise<SnapshotStatus | undefined>;
}
