/** What a test asks a worker process to do. */
export type Order =
  /** Detaches so many runs, one after the other, each of three turns. */
  | { do: 'detach'; runs: number; seed: number }
  /** Takes over what it finds; the answer says what that was. */
  | { do: 'recover' }
  /** Lets the model answer that waits. */
  | { do: 'answer' };

/** What a worker process tells. */
export type Report =
  | { kind: 'ready' }
  /** The caller of a run has its answer. */
  | { kind: 'detached'; sessionId: string; snapshotId: string }
  /** The model was asked and waits. */
  | { kind: 'asked' }
  /** A model call was stopped. */
  | { kind: 'stopped' }
  /** A save changed nothing. */
  | { kind: 'refused' }
  | { kind: 'recovered'; runs: { snapshotId: string; generation: number; outcome: string }[] };

/** What a worker process is. */
export interface WorkerSpec {
  folder: string;
  /** How far its clock is ahead, in ms: to it the leases of the others have ended. */
  ahead: number;
  heartbeatIntervalMs: number;
  /** The model waits to be told; otherwise it answers after a moment. */
  waits: boolean;
}
