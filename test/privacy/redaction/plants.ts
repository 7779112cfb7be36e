import { inflateRawSync, inflateSync } from 'node:zlib';
import type { PrivacyRule } from 'genkitx-agents/privacy';

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

/** A rule that finds the values of {@link Plants}, and counts the characters that it searches. */
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

/** All texts that the bytes may hold: plain, and decompressed. */
export function textsOf(bytes: Uint8Array): string[] {
  const texts = [Buffer.from(bytes).toString('utf8')];
  for (const unpack of [inflateSync, (packed: Uint8Array) => inflateRawSync(packed.subarray(1))]) {
    try {
      texts.push(unpack(bytes).toString('utf8'));
    } catch {
      // It is not compressed in this way.
    }
  }
  return texts;
}
