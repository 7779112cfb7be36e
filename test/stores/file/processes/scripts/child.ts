/** The script of a child process: runs the tasks of its parent, until the parent disconnects. */
import type { Answer, Request } from '../support/protocol.ts';
import { tasks } from './tasks.ts';

process.on('message', (request: Request) => void serve(request));

async function serve({ call, task, input }: Request): Promise<void> {
  let answer: Answer;
  try {
    answer = { call, result: await tasks[task](input as never) };
  } catch (error) {
    answer = { call, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  process.send!(answer);
}
