import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { OK, PROBLEMS } from './failures.ts';

/** The input and output of a command. */
export interface Io {
  /** Writes a part of the result; resolves when the output takes more. */
  print(text: string): Promise<void>;
  /** Writes a line for the person at the terminal, not to the result. */
  say(text: string): void;
  /** Shows the progress of the work, in place of the progress shown before. */
  progress(text: string): void;
  /** Asks the person at the terminal. Resolves with `undefined` without a terminal. */
  ask(question: string): Promise<boolean | undefined>;
  /** The standard input, for example a pipe. */
  readonly input: AsyncIterable<Uint8Array | string>;
  /** The folder to which paths are relative. */
  readonly folder: string;
  /** Aborts when the command has to end early. The reason is the exit code. */
  readonly signal: AbortSignal;
}

/** Exit codes after signals, as shells use them. */
const SIGNALS: Readonly<Partial<Record<NodeJS.Signals, number>>> = { SIGINT: 130, SIGTERM: 143 };
/** Without a terminal, progress is written once in this many ms. */
const PROGRESS_MS = 5000;

/** The terminal of this process. */
export function nodeIo(): Io & { flush(): Promise<void> } {
  const { stdin, stdout, stderr } = process;
  const end = new AbortController();
  for (const [name, code] of Object.entries(SIGNALS)) {
    process.on(name, () => {
      // A second signal ends the process at once.
      if (end.signal.aborted) process.exit(code);
      end.abort(code);
    });
  }
  // Removes Genkit's listener, which would end the process at once, with the exit code 0 of a success.
  process.on('newListener', (name: string, listener: () => void) => {
    if (name in SIGNALS) queueMicrotask(() => process.off(name, listener));
  });
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // The reader closed the pipe, as `head` does.
    if (code === 'EPIPE' || end.signal.aborted) return end.abort(OK);
    stderr.write(`The output can't be written: ${message}\n`);
    end.abort(PROBLEMS);
  });
  stderr.on('error', () => {});
  let shownAt = 0;
  let isShown = false;
  const clear = (): void => {
    if (isShown) stderr.write('\r\u001B[K');
    isShown = false;
  };
  return {
    async print(text) {
      clear();
      if (!stdout.write(text) && !end.signal.aborted) await drained(end.signal);
    },
    say(text) {
      clear();
      stderr.write(`${text}\n`);
    },
    progress(text) {
      if (stderr.isTTY) {
        stderr.write(`\r\u001B[K${text}`);
        isShown = true;
      } else if (Date.now() - shownAt >= PROGRESS_MS) {
        if (shownAt > 0) stderr.write(`${text}\n`);
        shownAt = Date.now();
      }
    },
    async ask(question) {
      if (!stdin.isTTY) return undefined;
      clear();
      const lines = createInterface({ input: stdin, output: stderr });
      try {
        const answer = await new Promise<string>((resolve) => {
          lines.once('SIGINT', () => end.abort(SIGNALS.SIGINT));
          lines.once('close', () => resolve(''));
          lines.question(`${question} [y/N] `, resolve);
        });
        return /^y(?:es)?$/i.test(answer.trim());
      } finally {
        lines.close();
      }
    },
    input: stdin,
    folder: process.cwd(),
    signal: end.signal,
    async flush() {
      clear();
      if (end.signal.aborted) return;
      stdout.end();
      await finished(stdout).catch(() => {});
    },
  };
}

/** Resolves when the output takes more, or is closed. */
function drained(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      process.stdout.off('drain', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    process.stdout.once('drain', done);
    signal.addEventListener('abort', done);
  });
}
