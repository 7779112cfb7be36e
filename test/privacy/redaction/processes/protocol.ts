/** Where the processes keep everything. */
export type MediumSpec = { folder: string } | { project: string };

/** What a process does. */
export interface WorkerSpec {
  medium: MediumSpec;
  /** How far its clock is ahead, in ms: to it the leases of those before have ended. */
  ahead: number;
  /** The first turn, and the one after the last. */
  from: number;
  to: number;
  /** Planted in everything that it says. Default of its task: turns; with `numbers` it only saves the values in one session. */
  values: string[];
  task: 'turns' | 'numbers';
  /** Whether the first background run never ends and no turn follows it, so that the process is killed during it. */
  holds: boolean;
}

export type Report =
  | { kind: 'ready' }
  /** So many turns are done, of this process and of those before. */
  | { kind: 'turns'; count: number }
  /** What a tool got after its approval, or a model that was asked in the background. */
  | { kind: 'seen'; by: 'approval' | 'detached'; text: string }
  | { kind: 'recovered'; outcomes: string[] }
  | { kind: 'numbered'; text: string }
  | { kind: 'done' };
