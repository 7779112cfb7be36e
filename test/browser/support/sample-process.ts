/** The sample as its user runs it: a process of its own. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { childScript } from '../../support/child-script.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const NODE = [process.execPath, await childScript(new URL('../../../samples/support/main.ts', import.meta.url))];
const NPM = ['npm', 'start', '--silent', '--ignore-scripts'];

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Sample {
  /** `http://127.0.0.1:<port>` */
  url: string;
  port: number;
  /** What it printed when it was ready. */
  stdout: string;
  ended: Promise<Ended>;
  /** Sends the signal and answers how the process ended. */
  end(signal: NodeJS.Signals): Promise<Ended>;
}

/** Runs the sample until it ends by itself. */
export async function runSample(env: Record<string, string>, args: string[] = []): Promise<Ended> {
  return ended(launch(NODE, args, env));
}

/** Starts the sample on a free port (or the one in `env`) and waits until it says that it is ready. */
export function startSample(env: Record<string, string>): Promise<Sample> {
  return started(launch(NODE, [], { PORT: '0', ...env }));
}

interface NpmSample extends Sample {
  /** Kills what is left of it and of all that it started. */
  killAll(): void;
}

/** As `startSample`, by `npm start`, which has ended when everything that it started has. The set-up before it is left out. */
export async function startWithNpm(env: Record<string, string>): Promise<NpmSample> {
  const child = launch(NPM, [], { PORT: '0', ...env }, true);
  const sample = await started(child);
  return {
    ...sample,
    killAll: () => {
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // Nothing is left.
      }
    },
  };
}

async function started(child: ChildProcess): Promise<Sample> {
  const end = ended(child);
  const stdout = await Promise.race([ready(child), end.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
  const url = /Chat page\s+(http:\S+)\//.exec(stdout)?.[1];
  if (!url) throw new Error(`No address in: ${stdout}`);
  return {
    url,
    port: Number(new URL(url).port),
    stdout,
    ended: end,
    end: (signal) => {
      child.kill(signal);
      return end;
    },
  };
}

/** @param group Whether it and all that it starts can be sent a signal together. */
function launch(
  [program, ...first]: string[],
  args: string[],
  env: Record<string, string>,
  group = false,
): ChildProcess {
  return spawn(program!, [...first, ...args], {
    cwd: ROOT,
    detached: group,
    env: { ...process.env, NODE_ENV: 'production', MODEL: 'offline', OFFLINE_PACE_MS: '0', HOST: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function ready(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const piece of child.stdout!.iterator({ destroyOnReturn: false })) {
    text += piece;
    if (/curl .*\n/.test(text)) return text;
  }
  return text;
}

async function ended(child: ChildProcess): Promise<Ended> {
  const result = { stdout: '', stderr: '' };
  child.stdout!.on('data', (piece) => (result.stdout += piece));
  child.stderr!.on('data', (piece) => (result.stderr += piece));
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  return { ...result, code, signal };
}
