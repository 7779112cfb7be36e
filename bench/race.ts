import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ContenderRequest, ContenderSpec } from './contender.ts';
import type { Report } from './report.ts';

const STORES = new URL('./contender.ts', import.meta.url);
/** The contenders use the built package, because Genkit is built too. */
const BUILT = { TSX_TSCONFIG_PATH: fileURLToPath(new URL('./tsconfig.built.json', import.meta.url)) };

/** A contender's process. `Request` is the type of its requests. */
export class Contender<Request = ContenderRequest> {
  readonly #child: ChildProcess;
  /** The ms of each turn so far. */
  readonly times: number[] = [];

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start<Request = ContenderRequest>(spec: object, script = STORES): Promise<Contender<Request>> {
    const execArgv = ['--expose-gc', '--max-old-space-size=8192', '--import', 'tsx'];
    const env = { ...process.env, ...BUILT };
    const child = fork(fileURLToPath(script), [JSON.stringify(spec)], { execArgv, env });
    const contender = new Contender<Request>(child);
    await contender.#answer();
    return contender;
  }

  async ask(request: Request): Promise<number> {
    this.#child.send(request as object);
    return this.#answer();
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }

  async #answer(): Promise<number> {
    const dead = new AbortController();
    const gone = once(this.#child, 'exit', { signal: dead.signal }).then(() => {
      throw new Error('a contender ended by itself; its output is above');
    });
    gone.catch(() => {});
    try {
      const [message] = (await Promise.race([once(this.#child, 'message'), gone])) as [
        { value: number; error?: string },
      ];
      if (message.error !== undefined) throw new Error(message.error);
      return message.value;
    } finally {
      dead.abort();
    }
  }
}

/** Starts the contenders, calls `use` with them, and always ends them. */
export async function withContenders<T>(
  specs: ContenderSpec[],
  use: (contenders: Contender[]) => Promise<T>,
): Promise<T> {
  const contenders: Contender[] = [];
  try {
    for (const spec of specs) contenders.push(await Contender.start(spec));
    return await use(contenders);
  } finally {
    await Promise.all(contenders.map((contender) => contender.stop()));
  }
}

/** How many turns a contender plays in a row: enough to fill the processor's caches with its memory again. */
const ROUND = 10;

/** Plays the workload in rounds. In each round the contenders take turns, in alternating order. */
export async function race(
  contenders: Contender[],
  turns: number,
  report: Report,
  options: { watches?: boolean } = {},
): Promise<void> {
  for (let done = 0; done < turns; done += ROUND) {
    for (const contender of (done / ROUND) % 2 === 0 ? contenders : contenders.toReversed()) {
      for (let turn = done; turn < Math.min(done + ROUND, turns); turn++) {
        contender.times.push(await contender.ask({ do: 'turn', ...options }));
      }
    }
    report.progress(ROUND);
  }
}
