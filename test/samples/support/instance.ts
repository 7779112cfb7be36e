/** An instance of a deployed sample: a process of its own, as the cloud would start and end it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { childScript } from '../../support/child-script.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const running = new Set<ChildProcess>();

/** Kills the instances that are left. */
export function killInstances(): void {
  for (const child of running) child.kill('SIGKILL');
}

export interface Instance {
  /** `http://127.0.0.1:<port>` */
  url: string;
  /** Sends SIGTERM and answers how the process ended. */
  end(): Promise<{ code: number | null; signal: NodeJS.Signals | null; stderr: string }>;
}

const compiled = new Map<string, Promise<string>>();

/** A script of the checkout as a file of plain JavaScript, made once: instances are started again and again. */
export function compiledScript(script: string): Promise<string> {
  const made = compiled.get(script) ?? childScript(new URL(`../../../${script}`, import.meta.url));
  compiled.set(script, made);
  return made;
}

/** Starts `script`, plain JavaScript, on a free port, with nothing of this machine's own settings. */
export async function startInstance(script: string, env: Record<string, string>): Promise<Instance> {
  const unset = { GEMINI_API_KEY: '', GOOGLE_API_KEY: '', K_SERVICE: '', NODE_ENV: 'production', GENKIT_ENV: 'prod' };
  const child = spawn(process.execPath, [script], {
    cwd: ROOT,
    env: { ...process.env, ...unset, HOST: '127.0.0.1', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let stderr = '';
  child.stderr.on('data', (piece) => (stderr += String(piece)));
  const closed = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  void closed.then(() => running.delete(child));
  const port = await new Promise<string>((resolve, reject) => {
    let stdout = '';
    child.stdout.on('data', (piece) => {
      stdout += String(piece);
      const found = /listens on port (\d+)/.exec(stdout);
      if (found) resolve(found[1]!);
    });
    void closed.then(() => reject(new Error(`${script} ended: ${stderr}`)));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    end: async () => {
      child.kill('SIGTERM');
      const [code, signal] = await closed;
      return { code, signal, stderr };
    },
  };
}
