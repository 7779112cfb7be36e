/** The medium of the processes. */
export type MediumSpec = { folder: string } | { project: string };

/** The settings of a process. */
export interface WorkerSpec {
  medium: MediumSpec;
  /** How far its clock is ahead, in ms: for this process the leases of earlier ones have expired. */
  ahead: number;
  /** The first turn, and the one after the last. */
  from: number;
  to: number;
  /** Planted in all its texts. Default of its task: turns; with `numbers` it only saves the values in one session. */
  values: string[];
  task: 'turns' | 'numbers';
  /** Whether the first background run never ends and no turn follows it, so that the process is killed during it. */
  holds: boolean;
}

export type Report =
  | { kind: 'ready' }
  /** The number of turns done by this process and earlier ones. */
  | { kind: 'turns'; count: number }
  /** The input of a tool after its approval, or of a model in the background. */
  | { kind: 'seen'; by: 'approval' | 'detached'; text: string }
  | { kind: 'recovered'; outcomes: string[] }
  | { kind: 'numbered'; text: string }
  | { kind: 'done' };
