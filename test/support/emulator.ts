import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

/** A running Cloud Firestore emulator. */
export interface Emulator {
  /** `host:port`, as `FIRESTORE_EMULATOR_HOST` has it. */
  readonly host: string;
  /** Which emulator it is, for people. */
  readonly source: string;
  /** Ends it, and waits for its end; nothing when it was running before. Default: `SIGKILL`. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** A way to start an emulator on a port. */
interface Launcher {
  readonly source: string;
  readonly command: string;
  readonly args: (port: number) => readonly string[];
}

/** How to get an emulator where none was found. */
export const NO_EMULATOR =
  'No Cloud Firestore emulator is to be had. Set FIRESTORE_EMULATOR_HOST to a running one, or install one: ' +
  '`gcloud components install cloud-firestore-emulator`, the package google-cloud-cli-firestore-emulator, or ' +
  '`npx firebase-tools setup:emulators:firestore`; it needs Java 11 or newer.';

const START_TIMEOUT_MS = 60_000;
const FETCH_TIMEOUT_MS = 300_000;

/**
 * The emulator to test on: the one `FIRESTORE_EMULATOR_HOST` names, else a new one of the installed Google Cloud SDK, of the Firebase CLI's
 * cache, or one that the Firebase CLI fetches.
 *
 * @param own Starts one in any case: on a port (default: a free one), with arguments of the emulator's own.
 * @throws Error that says how to get one.
 */
export async function startEmulator(own?: { port?: number; args?: readonly string[] }): Promise<Emulator> {
  const running = process.env['FIRESTORE_EMULATOR_HOST'];
  if (running && !own) return { host: running, source: 'FIRESTORE_EMULATOR_HOST', stop: async () => {} };
  const launcher = ofCloudSdk() ?? ofFirebaseCache() ?? fetched();
  if (!launcher) throw new Error(NO_EMULATOR);
  return launch(launcher, own?.port ?? (await freePort()), own?.args ?? []);
}

/** The SDK's jar has no main manifest, so its own script is run. */
function ofCloudSdk(): Launcher | undefined {
  const gcloud = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'gcloud'))
    .find((path) => existsSync(path));
  const roots = [
    process.env['CLOUDSDK_ROOT_DIR'],
    gcloud && join(dirname(realpathSync(gcloud)), '..'),
    '/usr/lib/google-cloud-sdk',
    join(homedir(), 'google-cloud-sdk'),
  ];
  for (const root of roots) {
    const script = root && join(root, 'platform', 'cloud-firestore-emulator', 'cloud_firestore_emulator');
    if (!script || !existsSync(script)) continue;
    return {
      source: 'the Google Cloud SDK',
      command: script,
      args: (port) => ['start', '--host=127.0.0.1', `--port=${port}`],
    };
  }
  return undefined;
}

function ofFirebaseCache(): Launcher | undefined {
  const folder = join(homedir(), '.cache', 'firebase', 'emulators');
  const jars = existsSync(folder)
    ? readdirSync(folder).filter((name) => /^cloud-firestore-emulator.*\.jar$/.test(name))
    : [];
  const jar = jars.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  if (jar === undefined) return undefined;
  return {
    source: 'the Firebase CLI’s cache',
    command: 'java',
    args: (port) => ['-jar', join(folder, jar), '--host', '127.0.0.1', '--port', String(port)],
  };
}

function fetched(): Launcher | undefined {
  const setup = spawnSync('npx', ['--yes', 'firebase-tools@14', 'setup:emulators:firestore'], {
    stdio: 'ignore',
    timeout: FETCH_TIMEOUT_MS,
  });
  if (setup.status !== 0) return undefined;
  const cached = ofFirebaseCache();
  return cached && { ...cached, source: 'fetched by the Firebase CLI' };
}

async function launch({ source, command, args }: Launcher, port: number, more: readonly string[]): Promise<Emulator> {
  // A group of its own, because the SDK's script starts Java as its child.
  const child = spawn(command, [...args(port), ...more], { detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
  const kill = (): void => killGroup(child, 'SIGKILL');
  process.once('exit', kill);
  let said = '';
  child.stderr.on('data', (chunk) => (said = `${said}${chunk}`.slice(-2000)));
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code) => resolve(`it ended with ${code}: ${said}`));
  });
  const problem = await Promise.race([ended, listening(port)]);
  if (problem !== undefined) {
    kill();
    throw new Error(`The Firestore emulator of ${source} did not start: ${problem}. ${NO_EMULATOR}`);
  }
  const stop = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    process.removeListener('exit', kill);
    killGroup(child, signal);
    await ended;
    await released(port);
  };
  return { host: `127.0.0.1:${port}`, source, stop };
}

function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended by itself.
  }
}

/** Waits until something listens on the port. */
async function listening(port: number): Promise<string | undefined> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!(await answers(port))) {
    if (Date.now() > deadline) return `nothing listened on port ${port} in time`;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return undefined;
}

async function released(port: number): Promise<void> {
  while (await answers(port)) await new Promise((resolve) => setTimeout(resolve, 20));
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** A free port. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
