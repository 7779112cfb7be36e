import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { codeOf } from './file-system.ts';

/** The thread that holds a lock or writes a temporary file. Another process can find out from it whether the thread still runs. */
export interface Owner {
  /** Identifies the boot of the machine and the process namespace in it. A `pid` is valid only there. */
  readonly host: string;
  /** The id of the thread on Linux; elsewhere of the process. */
  readonly pid: number;
  /** The start time of `pid`, because a later thread may get the same id; `0`: unknown. */
  readonly started: string;
  /** Unique for every owner, even in one process. */
  readonly nonce: string;
}

/** `unknown`: it runs in another container, on a system without a process table, or ran before this machine was started. */
export type Liveness = 'alive' | 'dead' | 'unknown';

/**
 * This thread, as an owner.
 *
 * @throws The system's error when the process table can't be read now: other processes would consider an owner without a start time dead.
 */
export function newOwner(): Owner {
  self ??= thisThread();
  return { ...self, nonce: randomBytes(6).toString('hex') };
}

let self: Omit<Owner, 'nonce'> | undefined;

function thisThread(): Omit<Owner, 'nonce'> {
  const pid = numberOfThread();
  return { host: thisHost(), pid, started: hasProcessTable() ? mustStartOf(pid) : '0' };
}

/** One word without `/`: it is the content of a mark, and a part of file names. */
export function formatOwner({ host, pid, started, nonce }: Owner): string {
  return `1.${host}.${pid}.${started}.${nonce}`;
}

/** The owner at the beginning of a text; `undefined` if the text does not name one. */
export function parseOwner(text: string): Owner | undefined {
  const match = /^1\.([0-9a-f]{12})\.(\d+)\.(\d+)\.([0-9a-f]{12})(?=-|$)/.exec(text);
  if (!match) return undefined;
  const [, host, pid, started, nonce] = match as unknown as [string, string, string, string, string];
  return { host, pid: Number(pid), started, nonce };
}

/** Whether the owner still runs. Never `dead` for an owner that may still write; `alive` if that can't be determined now. */
export function livenessOf(owner: Owner): Liveness {
  if (owner.host !== thisHost()) return 'unknown';
  if (owner.pid === self?.pid && owner.started === self.started) return 'alive';
  if (!hasProcessTable()) return hasProcess(owner.pid) ? 'alive' : 'dead';
  try {
    const started = startOf(owner.pid);
    return started === owner.started ? 'alive' : 'dead';
  } catch {
    return 'alive';
  }
}

function numberOfThread(): number {
  try {
    return Number(/\/task\/(\d+)$/.exec(readlinkSync('/proc/thread-self'))?.[1] ?? process.pid);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return process.pid;
    throw error;
  }
}

let host: string | undefined;

function thisHost(): string {
  host ??= createHash('sha256').update(`${bootId()}\n${processNamespace()}`).digest('hex').slice(0, 12);
  return host;
}

function bootId(): string {
  return unlessCode(UNAVAILABLE, () => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) ?? hostname();
}

function processNamespace(): string {
  return unlessCode(UNAVAILABLE, () => readlinkSync('/proc/self/ns/pid')) ?? '';
}

let isLinux: boolean | undefined;

function hasProcessTable(): boolean {
  isLinux ??= unlessCode(MISSING, () => readFileSync('/proc/self/stat', 'latin1')) !== undefined;
  return isLinux;
}

function mustStartOf(pid: number): string {
  const started = startOf(pid);
  if (started === undefined) throw new Error('invariant: this process is in the process table');
  return started;
}

/** When a process or thread started; `undefined` if it has ended. */
function startOf(pid: number): string | undefined {
  const line = unlessCode(MISSING, () => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  if (line === undefined) return undefined;
  // The second field is the command in parentheses, which may contain any characters.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const [state, threads, started] = [fields[0], fields[17], fields[19]];
  // A zombie has ended when none of its threads is left inside a system call.
  if ((state === 'Z' || state === 'X') && Number(threads) <= 1) return undefined;
  return started;
}

const MISSING: readonly unknown[] = ['ENOENT', 'ESRCH'];
/** Codes of systems that will never give this information. */
const UNAVAILABLE: readonly unknown[] = [...MISSING, 'EACCES', 'EPERM'];

/** The result of `read`; `undefined` if it fails with one of `codes`. */
function unlessCode<T>(codes: readonly unknown[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (codes.includes(codeOf(error))) return undefined;
    throw error;
  }
}

function hasProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}
