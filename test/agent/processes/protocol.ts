/** A command of a test to a worker process. */
export type Order =
  /** Detaches this number of runs, one after the other, each of three turns. */
  | { do: 'detach'; runs: number; seed: number }
  /** Takes over the runs that it finds; the answer names them. */
  | { do: 'recover' }
  /** Lets the waiting model answer. */
  | { do: 'answer' };

/** A message of a worker process. */
export type Report =
  | { kind: 'ready' }
  /** The caller of a run has its answer. */
  | { kind: 'detached'; sessionId: string; snapshotId: string }
  /** The model was called and waits. */
  | { kind: 'asked' }
  /** A model call was stopped. */
  | { kind: 'stopped' }
  /** A save changed nothing. */
  | { kind: 'refused' }
  | { kind: 'recovered'; runs: { snapshotId: string; generation: number; outcome: string }[] };

/** The settings of a worker process. */
export interface WorkerSpec {
  folder: string;
  /** How far its clock is ahead, in ms: for this process the leases of the others have expired. */
  ahead: number;
  heartbeatIntervalMs: number;
  /** The model waits for a command; otherwise it answers after a moment. */
  waits: boolean;
}
