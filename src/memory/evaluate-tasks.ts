import { randomUUID } from 'node:crypto';
import type { ActionContext, Genkit, MessageData } from 'genkit';
import type { EvaluatorArgument, Score } from 'genkit/evaluator';
import { failedPrecondition, invalidArgument } from '../errors.ts';
import { checkOptions, isActionArgument, isFunction, isListOf, isObject } from '../store/check-options.ts';
import { checkMessages } from './pipeline/ingest/check-ingest.ts';
import type { MemoryManager } from './manager.ts';

/** Sessions of a user, and a question that what was learned from them helps to answer. */
export interface MemoryTask {
  /** The earlier sessions, oldest first. */
  readonly sessions: readonly (readonly MessageData[])[];
  /** The question. */
  readonly question: string;
  /** What the evaluator compares the answer with. Default: nothing. */
  readonly reference?: unknown;
}

/** What `evaluateTasks` takes. */
export interface TaskEvaluation {
  /** The tasks. */
  tasks: readonly MemoryTask[];
  /** Asks the agent as the user of the task, whom `context` names as `auth.uid`. Returns the agent's answer. */
  answer: (task: { question: string; context: ActionContext }) => Promise<string>;
  /** The judge: an evaluator of Genkit. It gets the question as `input`, the answer as `output`, and the `reference`. */
  evaluator: EvaluatorArgument;
}

/** The results of the tasks. */
export interface TaskScores {
  /** The share of the tasks that succeeded, 0 to 1. */
  readonly success: number;
  /** The tasks, in their order. */
  readonly tasks: readonly TaskScore[];
}

/** The result of a task. */
export interface TaskScore {
  /** The agent's answer. */
  readonly answer: string;
  /** Whether each score of the evaluator has the status `PASS`, or has no status and is `true`. */
  readonly isSuccess: boolean;
  /** The evaluator's scores. */
  readonly scores: readonly Score[];
}

const OPTIONS = {
  tasks: isListOf(isObject, '{ sessions, question }'),
  answer: isFunction,
  evaluator: isActionArgument,
};

/** Learns from the sessions of each task, asks, and lets the evaluator judge the answers. Each task has a user of its own, who is erased. */
export async function evaluateTasks(
  manager: Pick<MemoryManager, 'scopeFor' | 'ingest' | 'erase'>,
  ai: Pick<Genkit, 'evaluate'>,
  options: TaskEvaluation,
): Promise<TaskScores> {
  checkTasks(options);
  const { tasks, answer, evaluator } = options;
  const answers: string[] = [];
  for (const [i, { sessions, question }] of tasks.entries()) {
    const context = { auth: { uid: `evaluation-${randomUUID()}` } };
    const scope = manager.scopeFor('user', { context });
    try {
      for (const [j, messages] of sessions.entries()) {
        const { status } = await manager.ingest({ scope, source: { id: `session ${j}` }, messages, wait: true });
        if (status !== 'committed')
          throw failedPrecondition(`evaluateTasks: learning from tasks[${i}].sessions[${j}] ended as '${status}'.`);
      }
      answers.push(await answer({ question, context }));
    } finally {
      await manager.erase({ scope });
    }
  }
  const dataset = tasks.map(({ question, reference }, i) => ({
    testCaseId: String(i),
    input: question,
    output: answers[i],
    reference,
  }));
  const judged = new Map((await ai.evaluate({ evaluator, dataset })).map((one) => [one.testCaseId, one.evaluation]));
  const results = answers.map((text, i): TaskScore => {
    const scores = [judged.get(String(i)) ?? []].flat();
    const isSuccess =
      scores.length > 0 && scores.every(({ status, score }) => (status ?? (score === true && 'PASS')) === 'PASS');
    return { answer: text, isSuccess, scores };
  });
  return { success: results.filter(({ isSuccess }) => isSuccess).length / results.length, tasks: results };
}

function checkTasks(options: Partial<TaskEvaluation> | undefined): void {
  checkOptions('evaluateTasks', options, OPTIONS);
  const { tasks, answer, evaluator } = options ?? {};
  if (!tasks?.length || !answer || evaluator === undefined)
    throw invalidArgument('evaluateTasks needs at least one of tasks, an answer function and an evaluator.');
  for (const [i, { sessions, question }] of tasks.entries()) {
    if (!Array.isArray(sessions))
      throw invalidArgument(`evaluateTasks: tasks[${i}].sessions must be a list of conversations.`);
    for (const [j, messages] of sessions.entries())
      checkMessages(`evaluateTasks: tasks[${i}].sessions[${j}]`, messages);
    if (typeof question !== 'string' || question.trim() === '')
      throw invalidArgument(`evaluateTasks: tasks[${i}].question must be a text that is not blank.`);
  }
}
