import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inflateRawSync, inflateSync } from 'node:zlib';
import { FileSessionStore, type SessionStore } from 'genkitx-agents';
import { redacting, type PrivacyRule, type RedactingOptions } from 'genkitx-agents/privacy';
import { onTestFinished } from 'vitest';

export const SECRET = 'a secret of the tests'.padEnd(40, '.');

/** Makes values that {@link planted} finds: as text, and as a number. */
export class Plants {
  readonly values: string[] = [];
  #count = 0;

  text(): string {
    const value = `plant-${String(++this.#count).padStart(4, '0')}-x`;
    this.values.push(value);
    return value;
  }

  number(): number {
    const value = 770_000_000_000 + ++this.#count;
    this.values.push(String(value));
    return value;
  }
}

const PLANT = /plant-\d{4}-x|77\d{10}/g;

/** A rule that finds the values of {@link Plants}, and counts the characters that it is asked to search. */
export function planted(before: () => Promise<void> | void = () => {}): PrivacyRule & { chars: number } {
  const rule = {
    name: 'planted',
    maxLength: 12,
    chars: 0,
    find: (text: string) => {
      rule.chars += text.length;
      const answer = () =>
        [...text.matchAll(PLANT)].map(({ index, 0: value }) => ({
          kind: 'plant',
          start: index,
          end: index + value.length,
        }));
      const waiting = before();
      return waiting ? waiting.then(answer) : answer();
    },
  };
  return rule;
}

export function optionsWith(options: Partial<RedactingOptions> = {}): RedactingOptions {
  return { rules: [planted()], secret: SECRET, ...options };
}

/** A folder that is gone when the test is over. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'redacting-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** A redacting store over the files of a folder, as a process has it. */
export function openStore(folder: string, options: Partial<RedactingOptions> = {}) {
  // oxlint-disable-next-line typescript/no-explicit-any -- It fits an agent of any state.
  const store = redacting<any>(new FileSessionStore(folder), optionsWith(options));
  onTestFinished(() => store.close());
  return store;
}

/** All texts that the bytes may hold: as they are, and unpacked. */
export function textsOf(bytes: Uint8Array): string[] {
  const texts = [Buffer.from(bytes).toString('utf8')];
  for (const unpack of [inflateSync, (packed: Uint8Array) => inflateRawSync(packed.subarray(1))]) {
    try {
      texts.push(unpack(bytes).toString('utf8'));
    } catch {
      // It is not packed in this way.
    }
  }
  return texts;
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
