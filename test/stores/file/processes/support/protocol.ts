import type { tasks } from '../scripts/tasks.ts';

/** The pipe on which a child reports lines. */
export const REPORTS = 4;
/** The pipe from which a child reads one byte to pass the gate. */
export const GATE = 5;

/** The tasks of a child process, by name. */
type Tasks = typeof tasks;
export type TaskName = keyof Tasks;
export type TaskInput<N extends TaskName> = Parameters<Tasks[N]>[0];
export type TaskResult<N extends TaskName> = Awaited<ReturnType<Tasks[N]>>;

export interface Request {
  readonly call: number;
  readonly task: TaskName;
  readonly input: unknown;
}

export type Answer =
  | { readonly call: number; readonly result: unknown }
  | { readonly call: number; readonly error: string };
