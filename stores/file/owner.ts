import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, uptime } from 'node:os';

/** Who made a lock or a temporary file: enough for another process to tell whether it is still there. */
export interface Owner {
  /** The machine since its start, and the process namespace in it: where `pid` means anything. */
  readonly host: string;
  /** Of the thread, where the system numbers threads as it does processes: a thread may end while its process lives. Else of the process. */
  readonly pid: number;
  /** When that started, so that a later one of the same `pid` is told apart; `0`: the system does not say. */
  readonly started: string;
  /** Different for every owner, also of the same process. */
  readonly nonce: string;
}

/**
 * `remote`: it can't be told from here, because the owner is on another machine or in another container, or may be another thread of this
 * process where threads have no numbers.
 */
export type Liveness = 'alive' | 'dead' | 'remote';

/** This thread, as the owner of what it is about to make. */
export function newOwner(): Owner {
  const pid = thisThread();
  const self = startOf(pid);
  const started = typeof self === 'object' ? self.started : '0';
  return { host: thisHost(), pid, started, nonce: randomBytes(6).toString('hex') };
}

/** One line, short enough for a symbolic link that needs no block of its own. */
export function formatOwner({ host, pid, started, nonce }: Owner): string {
  return `1.${host}.${pid}.${started}.${nonce}`;
}

/** The owner that {@link formatOwner} wrote; `undefined`: it is something else. */
export function parseOwner(text: string): Owner | undefined {
  const match = /^1\.([0-9a-f]{12})\.(\d+)\.(\d+)\.([0-9a-f]{12})$/.exec(text);
  if (!match) return undefined;
  const [, host, pid, started, nonce] = match as unknown as [string, string, string, string, string];
  return { host, pid: Number(pid), started, nonce };
}

/** Whether the owner still runs. Never `dead` of one that may still write. */
export function livenessOf(owner: Owner): Liveness {
  if (owner.host !== thisHost()) return 'remote';
  const running = startOf(owner.pid);
  if (running === 'gone') return 'dead';
  if (running !== undefined) return running.started === owner.started ? 'alive' : 'dead';
  if (owner.pid === process.pid) return 'remote';
  return hasProcess(owner.pid) ? 'alive' : 'dead';
}

function thisThread(): number {
  try {
    return Number(/\/task\/(\d+)$/.exec(readlinkSync('/proc/thread-self'))?.[1] ?? process.pid);
  } catch {
    return process.pid;
  }
}

let host: string | undefined;

function thisHost(): string {
  host ??= createHash('sha256').update(`${bootOf()}\n${namespaceOf()}`).digest('hex').slice(0, 12);
  return host;
}

function bootOf(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    // The start of the machine, to ten minutes: coarse enough to come out the same each time, but for rare cases that end as `remote`.
    return `${hostname()} ${Math.round((Date.now() / 1000 - uptime()) / 600)}`;
  }
}

function namespaceOf(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/** When a process or thread started, by Linux's process table; `gone`: it has ended; `undefined`: there is no such table. */
function startOf(pid: number): { started: string } | 'gone' | undefined {
  let line: string;
  try {
    line = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return hasProcessTable() && !hasProcess(pid) ? 'gone' : undefined;
  }
  // The second field is the command in parentheses, and may itself hold anything.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const [state, threads, started] = [fields[0], fields[17], fields[19]];
  // A zombie has ended when none of its threads is left inside a system call.
  if ((state === 'Z' || state === 'X') && Number(threads) <= 1) return 'gone';
  return started === undefined ? undefined : { started };
}

function hasProcessTable(): boolean {
  try {
    return readFileSync('/proc/self/stat').length > 0;
  } catch {
    return false;
  }
}

function hasProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
