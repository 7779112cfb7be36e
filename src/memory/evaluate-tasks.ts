import { randomUUID } from 'node:crypto';
import type { ActionContext, MessageData } from 'genkit';
import type { EvaluatorArgument, Score } from 'genkit/evaluator';
import { errorMessage, failedPrecondition, invalidArgument, logWarning, quote } from '../errors.ts';
import {
  checkOptions,
  isActionArgument,
  isAny,
  isFunction,
  isListOf,
  isObject,
  isText,
} from '../store/check-options.ts';
import type { Generates } from './pipeline/pipeline.ts';
import { checkMessages } from './pipeline/ingest/check-ingest.ts';
import type { MemoryManager } from './manager.ts';
import { targetOf } from './scopes.ts';
import type { FailedCase } from './types.ts';

/** The sessions of a user, and a question whose answer needs facts from these sessions. */
export interface MemoryTask {
  /** The earlier sessions, oldest first. */
  readonly sessions: readonly (readonly MessageData[])[];
  /** The question. */
  readonly question: string;
  /** The expected answer, for the evaluator. Default: none. */
  readonly reference?: unknown;
}

/** Options of `evaluateTasks`. */
export interface TaskEvaluation {
  /** The tasks. */
  tasks: readonly MemoryTask[];
  /**
   * Asks the agent as the task's user, whose id is `auth.uid` of `context`, and returns the agent's answer. It must resolve only when the
   * turn has ended, because the user's memories are erased then. The agent needs a store, and a memory whose first scope is `user`.
   */
  answer: (task: { question: string; context: ActionContext }) => Promise<string>;
  /** A Genkit evaluator, which judges the answer. It gets the question as `input`, the answer as `output`, and the `reference`. */
  evaluator: EvaluatorArgument;
}

/** The results of the tasks. */
export interface TaskScores {
  /** The share of the tasks that succeeded, 0 to 1. */
  readonly success: number;
  /** The tasks, in their order. */
  readonly tasks: readonly TaskScore[];
  /**
   * Tasks without a result: learning from a session failed, `answer` failed, or the evaluator failed or returned no score. They count as
   * not solved.
   */
  readonly failed: readonly FailedCase[];
}

/** The result of a task. */
export interface TaskScore {
  /** The agent's answer. `undefined` for a task without a result; see `failed`. */
  readonly answer?: string;
  /**
   * Whether the task was solved: it has a result, and each score of the evaluator has the status `PASS`, or no status and the value `true`.
   */
  readonly isSuccess: boolean;
  /** The evaluator's scores. */
  readonly scores: readonly Score[];
}

const OPTIONS = {
  tasks: isListOf(isObject, '{ sessions, question }'),
  answer: isFunction,
  evaluator: isActionArgument,
};
const TASK = {
  sessions: isListOf((value) => (Array.isArray(value) ? undefined : 'a list'), 'conversations'),
  question: isText,
  reference: isAny,
};

/** Learns from the sessions of each task, asks, and lets the evaluator judge the answer. Each task has a user of its own. */
export async function evaluateTasks(
  manager: MemoryManager,
  ai: Generates,
  options: TaskEvaluation,
): Promise<TaskScores> {
  checkTasks(options);
  const evaluator = await definedEvaluator(ai, options.evaluator);
  const results: TaskScore[] = [];
  const failed: FailedCase[] = [];
  for (const [index, task] of options.tasks.entries()) {
    const { question: input, reference } = task;
    let answer: string | undefined;
    try {
      answer = await askAfterLearning(manager, task, options.answer);
      const [judged] = await ai.evaluate({ evaluator, dataset: [{ input, output: answer, reference }] });
      const scores = [judged?.evaluation ?? []].flat();
      if (scores.length === 0) throw new Error('The evaluator returned no score.');
      const isSuccess = scores.map(isPassed).every(Boolean);
      results.push({ answer, isSuccess, scores });
    } catch (error) {
      failed.push({ index, error: errorMessage(error) });
      results.push({ ...(answer !== undefined && { answer }), isSuccess: false, scores: [] });
    }
  }
  if (failed.length === results.length)
    throw failedPrecondition(`evaluateTasks: no task has a result. ${failed[0]!.error}`);
  return { success: results.filter(({ isSuccess }) => isSuccess).length / results.length, tasks: results, failed };
}

function isPassed({ error, status, score }: Score): boolean {
  if (error !== undefined) throw new Error(error);
  if (status === 'PASS' || status === 'FAIL') return status === 'PASS';
  if (status === undefined && typeof score === 'boolean') return score;
  throw new Error(
    'The evaluator returned a score without the status PASS or FAIL whose value is not true or false. Let it set a status.',
  );
}

/**
 * Learns from the sessions of a task as a new user, and asks the question.
 *
 * @throws An error whose message is reported in `failed`.
 */
async function askAfterLearning(
  manager: MemoryManager,
  { sessions, question }: MemoryTask,
  answer: TaskEvaluation['answer'],
): Promise<string> {
  const uid = `evaluation-${randomUUID()}`;
  const scope = manager.scopeFor('user', { context: { auth: { uid } } });
  const { userId } = targetOf(scope).id as { userId?: string };
  // The scope is erased below, so it must belong only to the task.
  if (!userId?.includes(uid))
    throw new Error(
      `The manager's userId must return a text that contains auth.uid of the context; it returned ${quote(userId ?? '')}.`,
    );
  try {
    await manager.consent.set(scope, 'on');
    for (const [i, messages] of sessions.entries()) {
      const { status } = await manager.ingest({ scope, source: { id: `session ${i}` }, messages, wait: true });
      if (status === 'committed') continue;
      const [job] = await manager.jobs.list({ scope });
      throw new Error(`Learning from session ${i} ended as '${status}'. ${job?.error ?? ''}`.trimEnd());
    }
    const answered: unknown = await answer({ question, context: { auth: { uid } } });
    if (typeof answered !== 'string') throw new Error('answer must return a text.');
    return answered;
  } finally {
    await manager.erase({ scope }).catch((error: unknown) => {
      logWarning(`User ${userId} of evaluateTasks could not be erased completely.`, error);
    });
  }
}

function checkTasks(options: Partial<TaskEvaluation> | undefined): void {
  checkOptions('evaluateTasks', options, OPTIONS);
  const { tasks, answer, evaluator } = options ?? {};
  if (!tasks?.length || !answer || evaluator === undefined)
    throw invalidArgument('evaluateTasks needs at least one task, an answer function and an evaluator.');
  for (const [i, task] of tasks.entries()) {
    checkOptions(`evaluateTasks: tasks[${i}]`, task, TASK);
    const { sessions, question } = task;
    if (sessions === undefined || question === undefined)
      throw invalidArgument(`evaluateTasks: tasks[${i}] needs sessions and a question.`);
    for (const [j, messages] of sessions.entries()) {
      checkMessages(`evaluateTasks: tasks[${i}].sessions[${j}]`, messages);
      if (messages.length === 0) throw invalidArgument(`evaluateTasks: tasks[${i}].sessions[${j}] has no message.`);
    }
  }
}

/** @throws `INVALID_ARGUMENT` if Genkit does not have the evaluator. */
async function definedEvaluator({ registry }: Generates, evaluator: EvaluatorArgument): Promise<EvaluatorArgument> {
  if (typeof evaluator === 'function') return evaluator;
  const name = typeof evaluator === 'string' ? evaluator : evaluator.name;
  if (await registry.lookupAction(`/evaluator/${name}`)) return name;
  throw invalidArgument(`evaluateTasks: Genkit has no evaluator ${quote(name)}.`);
}
