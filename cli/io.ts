import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { OK, PROBLEMS } from './failures.ts';

/** What a command reads from and writes to. */
export interface Io {
  /** Writes the result; resolves when more can be taken. */
  print(text: string): Promise<void>;
  /** Writes a line for the person at the terminal, beside the result. */
  say(text: string): void;
  /** Shows how far the work is, in place of what was shown before. */
  progress(text: string): void;
  /** Asks a person; `undefined`: there is none. */
  ask(question: string): Promise<boolean | undefined>;
  /** What comes in, say by a pipe. */
  readonly input: AsyncIterable<Uint8Array | string>;
  /** The folder that paths are relative to. */
  readonly folder: string;
  /** Aborts when the command is to end early. The reason is the exit code. */
  readonly signal: AbortSignal;
}

/** Exit codes of an end from outside, as shells know them. */
const SIGNALS: Readonly<Partial<Record<NodeJS.Signals, number>>> = { SIGINT: 130, SIGTERM: 143 };
/** Where progress is not shown in place, it is written once in so many ms. */
const PROGRESS_MS = 5000;

/** The terminal of this process. */
export function nodeIo(): Io & { flush(): Promise<void> } {
  const { stdin, stdout, stderr } = process;
  const end = new AbortController();
  for (const [name, code] of Object.entries(SIGNALS)) {
    process.on(name, () => {
      // Once more: at once.
      if (end.signal.aborted) process.exit(code);
      end.abort(code);
    });
  }
  // Genkit has a listener that ends the process at once, and with 0, as if the work were done.
  process.on('newListener', (name: string, listener: () => void) => {
    if (name in SIGNALS) queueMicrotask(() => process.off(name, listener));
  });
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // The reader has seen enough, `head` say.
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
