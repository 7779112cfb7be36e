import { createHash } from 'node:crypto';
import type { MessageData } from 'genkit';
import { canonicalJson } from '../../json/value.ts';
import { isWaiting } from '../tool-requests.ts';

/** Counts the messages that were read, for tests: to hash them, to count their tokens, or to write them. */
export const meter = { messages: 0 };

/**
 * The messages of one branch of a session, oldest first, without those of the prompt. A position is an index in it.
 *
 * Each message is hashed once, when a hash is first needed. A log made from an earlier one of the same branch keeps the known hashes.
 */
export class MessageLog {
  readonly messages: readonly MessageData[];
  /** Where turns begin: at each user message, and at the first message. */
  readonly turnStarts: readonly number[];
  /** At index `i`, the hash of the first `i` messages. Grows when `prefixHash` needs more. */
  readonly #hashes: string[];

  private constructor(messages: readonly MessageData[], hashes: string[]) {
    this.messages = messages;
    this.turnStarts = turnStartsOf(messages);
    this.#hashes = hashes;
  }

  /** @param before A log that may begin with the same messages; their hashes are taken from it. */
  static of(messages: readonly MessageData[], before?: MessageLog): MessageLog {
    if (!before) return new MessageLog(messages, [EMPTY_HASH]);
    const most = Math.min(before.#hashes.length - 1, messages.length);
    let same = 0;
    while (same < most && isSame(messages[same]!, before.messages[same]!)) same++;
    return new MessageLog(messages, before.#hashes.slice(0, same + 1));
  }

  get length(): number {
    return this.messages.length;
  }

  /** SHA-256 of the first `to` messages, in hex. It does not depend on the order of members, nor on the metadata of messages. */
  prefixHash(to: number): string {
    for (let i = this.#hashes.length - 1; i < to; i++) {
      this.#hashes.push(next(this.#hashes[i]!, this.messages[i]!));
    }
    return this.#hashes[to]!;
  }

  /**
   * The end of the last turn that has ended: the length, or the start of the last turn while a tool request of it waits for an answer.
   */
  get completeTo(): number {
    return isWaiting(this.messages.at(-1)) ? (this.turnStarts.at(-1) ?? 0) : this.length;
  }
}

const EMPTY_HASH = createHash('sha256').digest('hex');

function next(hash: string, { role, content }: MessageData): string {
  meter.messages++;
  // A store may return members in another order than they were saved in.
  return createHash('sha256').update(hash).update(canonicalJson({ role, content })).digest('hex');
}

/** Genkit copies messages but not their parts, so equal parts are the same objects. */
function isSame(a: MessageData, b: MessageData): boolean {
  if (a === b) return true;
  return (
    a.role === b.role && a.content.length === b.content.length && a.content.every((part, i) => part === b.content[i])
  );
}

function turnStartsOf(messages: readonly MessageData[]): number[] {
  const starts: number[] = [];
  messages.forEach(({ role }, i) => {
    if (role === 'user' || i === 0) starts.push(i);
  });
  return starts;
}
