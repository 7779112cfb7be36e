import { nodeFileSystem, type FileSystem } from '../../../../../stores/file/disk/file-system.ts';

/** When a process ends: at its n-th changing system call, before it, in the middle of it (a write), or after it. */
export interface DeathPlan {
  readonly call: number;
  /** Counts calls of this kind only. */
  readonly of?: 'rename';
  readonly moment: 'before' | 'midway' | 'after';
}

const CHANGING = ['open', 'write', 'truncate', 'flush', 'rename', 'link', 'unlink', 'mkdir', 'rmdir'] as const;

/** The real file system, through which the process kills itself as planned. */
export function mortalFileSystem(plan: DeathPlan): FileSystem {
  let calls = 0;
  const mortal: FileSystem = { ...nodeFileSystem };
  for (const name of CHANGING) {
    const real = nodeFileSystem[name] as (...args: unknown[]) => unknown;
    const replacement = (...args: unknown[]): unknown => {
      if ((plan.of !== undefined && name !== plan.of) || ++calls !== plan.call) return real(...args);
      if (plan.moment === 'midway' && name === 'write') {
        const [fd, bytes] = args as [number, Uint8Array];
        nodeFileSystem.write(fd, bytes.subarray(0, bytes.length / 2));
      }
      if (plan.moment !== 'after') return die();
      try {
        return real(...args);
      } finally {
        // Also when the call failed: among several writers one often finds a lock taken.
        die();
      }
    };
    Object.assign(mortal, { [name]: replacement });
  }
  return mortal;
}

/** Kills this process at once, like `kill -9`. */
function die(): never {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('invariant: a killed process does not go on');
}
