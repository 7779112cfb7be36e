import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { FileSessionStore, type SessionStore } from 'genkitx-agents';
import { redacting, type RedactingOptions } from 'genkitx-agents/privacy';
import { onTestFinished } from 'vitest';
import { planted, SECRET, textsOf } from './plants.ts';

export { planted, Plants, SECRET } from './plants.ts';

export function optionsWith(options: Partial<RedactingOptions> = {}): RedactingOptions {
  return { rules: [planted()], secret: SECRET, ...options };
}

/** The redacting store of a process, over the files of a folder. */
export function openStore(folder: string, options: Partial<RedactingOptions> = {}) {
  // oxlint-disable-next-line typescript/no-explicit-any -- It fits an agent of any state.
  const store = redacting<any>(new FileSessionStore(folder), optionsWith(options));
  onTestFinished(() => store.close());
  return store;
}

/** The values that the files below a folder hold, in their names or contents, each with the file. Files may come and go meanwhile. */
export function findOnDisk(folder: string, values: Iterable<string>): string[] {
  const found: string[] = [];
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    let texts = [name];
    try {
      if (statSync(path).isFile()) texts = [name, ...textsOf(readFileSync(path))];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    for (const value of values) if (texts.some((text) => text.includes(value))) found.push(`${value} in ${name}`);
  }
  return found;
}

/** Scans the folder before and after each save and record that the store writes. */
export function watched<S extends SessionStore>(store: S, scan: () => void): S {
  return new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        const result: unknown = member.apply(target, args);
        if (!(result instanceof Promise)) return result;
        return result.finally(scan);
      };
    },
  });
}
