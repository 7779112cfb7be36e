import { run } from '../../../cli/run.ts';
import type { Io } from '../../../cli/io.ts';

/** The result of a command. */
export interface Ran {
  code: number;
  /** Its standard output. */
  out: string;
  /** Its messages on standard error. */
  err: string;
}

export interface RunOptions {
  /** The folder that paths are relative to. */
  folder?: string;
  /** The answer of the person at the terminal. Default: no terminal. */
  answer?: boolean;
  /** The standard input. */
  input?: Iterable<string>;
  signal?: AbortSignal;
  /** Called with each text that the command writes. */
  onText?: (text: string) => void;
}

/** Runs a command line in this process. */
export async function runCli(argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { folder = process.cwd(), answer, input = [], signal = new AbortController().signal, onText } = options;
  const ran: Ran = { code: -1, out: '', err: '' };
  const io: Io = {
    print: async (text) => {
      ran.out += text;
      onText?.(text);
    },
    say: (text) => {
      ran.err += `${text}\n`;
      onText?.(text);
    },
    progress: (text) => void (ran.err += `${text}\n`),
    ask: async (question) => {
      ran.err += `${question}\n`;
      return answer;
    },
    input: (async function* () {
      yield* input;
    })(),
    folder,
    signal,
  };
  ran.code = await run(argv, io);
  return ran;
}

/** The objects in lines of JSON. */
export function jsonLinesOf(out: string): Record<string, unknown>[] {
  return out
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
