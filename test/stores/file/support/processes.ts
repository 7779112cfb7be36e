import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Task } from './worker.ts';

const SCRIPT = fileURLToPath(new URL('worker.ts', import.meta.url));

/** Another process that works on a store. Whoever starts it has to kill it. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #answers: { result?: unknown; error?: string }[] = [];
  #output = '';
  #wake: () => void = () => {};
  #exit: Promise<unknown>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#exit = once(child, 'exit');
    child.on('message', (answer) => {
      this.#answers.push(answer as { result?: unknown; error?: string });
      this.#wake();
    });
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
      this.#wake();
    });
  }

  /** Starts so many; answers when all are ready for tasks. */
  static async start(count: number): Promise<Worker[]> {
    return Promise.all(
      Array.from({ length: count }, async () => {
        const child = fork(SCRIPT, { execArgv: ['--import', 'tsx'], stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
        const worker = new Worker(child);
        await worker.#answer();
        return worker;
      }),
    );
  }

  /** What the worker wrote, line by line. */
  get lines(): string[] {
    return this.#output.split('\n').slice(0, -1);
  }

  /** Has the worker do a task; answers its result. */
  async run(task: Task): Promise<unknown> {
    this.begin(task);
    return this.#answer();
  }

  /** Has the worker begin a task that is not waited for. */
  begin(task: Task): void {
    this.#child.send(task);
  }

  /** When the worker has written so many lines. */
  async wrote(count: number): Promise<void> {
    while (this.lines.length < count) await this.#news();
  }

  /** Kills it as `kill -9` does, and waits until it is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
  }

  static async killAll(workers: readonly Worker[]): Promise<void> {
    await Promise.all(workers.map((worker) => worker.kill()));
  }

  async #answer(): Promise<unknown> {
    while (this.#answers.length === 0) await this.#news();
    const { result, error } = this.#answers.shift()!;
    if (error !== undefined) throw new Error(`The worker failed: ${error}`);
    return result;
  }

  async #news(): Promise<void> {
    const gone = this.#exit.then(() => {
      throw new Error('The worker is gone.');
    });
    await Promise.race([new Promise<void>((resolve) => (this.#wake = resolve)), gone]);
  }
}
