import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { childScript } from '../../../../support/child-script.ts';
import { GATE, REPORTS, type Answer, type TaskInput, type TaskName, type TaskResult } from './protocol.ts';

const SCRIPT = await childScript(new URL('../scripts/child.ts', import.meta.url), { isWhole: true });

/** A child process that carries out tasks one after the other, with one warm store for each directory. */
export class Child {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  readonly #ended: Promise<void>;
  #calls = 0;
  #awaited: { readonly line: string; readonly resolve: () => void } | undefined;
  /** Called for each reported line; when `ended`, for all of them, also when the process was killed. */
  onLine: ((line: string) => void) | undefined;

  constructor() {
    this.#process = fork(SCRIPT, [], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe', 'pipe'],
    });
    this.#process.on('message', (answer: Answer) => this.#settle(answer));
    this.#ended = this.#untilEnded();
    createInterface({ input: this.#pipe(REPORTS) as Readable }).on('line', (line) => {
      this.onLine?.(line);
      if (line === this.#awaited?.line) this.#awaited.resolve();
    });
    // Writing to the gate of a killed process is not an error of the test.
    (this.#pipe(GATE) as Writable).on('error', () => {});
  }

  /** Resolves when the process has ended and all its reports were read. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Rejects with the error of the task, or when the process ends before the task. */
  call<N extends TaskName>(task: N, input: TaskInput<N>): Promise<TaskResult<N>> {
    const call = this.#calls++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
      this.#process.send({ call, task, input }, (error) => {
        if (error) this.#settle({ call, error: error.message });
      });
    });
  }

  /** Lets the child pass the gate at which it waits, or will wait. */
  openGate(): void {
    (this.#pipe(GATE) as Writable).write('.');
  }

  /** Resolves when this line is reported next. */
  nextLine(wanted: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#awaited = { line: wanted, resolve };
      void this.#ended.then(() => reject(new Error(`the child process ended before it reported: ${wanted}`)));
    });
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#ended;
  }

  async #untilEnded(): Promise<void> {
    await once(this.#process, 'close');
    for (const { reject } of this.#waiting.values()) reject(new Error('the child process ended'));
    this.#waiting.clear();
  }

  #pipe(fd: number): unknown {
    return (this.#process.stdio as readonly unknown[])[fd];
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.call);
    this.#waiting.delete(answer.call);
    if ('error' in answer) waiting?.reject(new Error(answer.error));
    else waiting?.resolve(answer.result as never);
  }
}

/** Running processes for a test, and new folders on request. */
export interface Contenders {
  readonly children: readonly Child[];
  readonly folder: () => string;
}

/** The resources of a test; `end` releases them. */
export class Fleet {
  readonly #children = new Set<Child>();
  readonly #folders: string[] = [];

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-processes-'));
    this.#folders.push(folder);
    return folder;
  }

  start(): Child {
    const child = new Child();
    this.#children.add(child);
    void child.ended.then(() => this.#children.delete(child));
    return child;
  }

  /** This many running processes. */
  async launch(count: number): Promise<Child[]> {
    const children = Array.from({ length: count }, () => this.start());
    await Promise.all(children.map((child) => child.call('ready', {})));
    return children;
  }

  async end(): Promise<void> {
    await Promise.all([...this.#children].map((child) => child.kill()));
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
