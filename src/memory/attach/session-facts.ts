import type { MessageData } from 'genkit';
import { MessageLog } from '../../session/log/message-log.ts';
import type { SessionFacts } from '../../session/turn-memory.ts';
import type { Memory, MemorySource } from '../../store/memory/contract.ts';
import { holdsAt } from '../../store/memory/version.ts';
import { sourceNoteKey } from '../pipeline/records/learning-state.ts';
import { hashesOf, hashInRange, parseSourceNote, shortHash, unreadRanges } from '../pipeline/records/ranges.ts';
import { NOTES, type Pipeline } from '../pipeline/pipeline.ts';
import { targetOf, type MemoryScope } from '../scopes.ts';

/**
 * Returns the facts learned from the first messages of a session, up to the first message from which nothing was learned. Skipped messages,
 * and messages that were read in another branch, count as such a message. Two reads.
 *
 * @param messages All messages; the last turn is the current one.
 * @param keepTurns The number of turns before the current one that the facts do not replace.
 */
export async function sessionFacts(
  { store, now }: Pick<Pipeline, 'store' | 'now'>,
  scope: MemoryScope,
  sessionId: string,
  messages: readonly MessageData[],
  keepTurns: number,
): Promise<SessionFacts | undefined> {
  const { id, options } = targetOf(scope);
  const key = sourceNoteKey(sessionId);
  const { notes } = await store.notes(id, NOTES.pipeline, { ...options, keys: [key] });
  const log = MessageLog.of(messages);
  const hashAt = (position: number) => shortHash(log.prefixHash(position));
  // Ignores a range that ends in another branch, because its facts may be from either branch.
  const note = parseSourceNote(notes[0]?.value);
  const ranges = note.ranges.filter(
    (range) => range.isLearned && range.to <= log.length && hashInRange(range, range.to) === hashAt(range.to),
  );
  if (ranges.length === 0) return undefined;
  const [unread] = unreadRanges({ from: 0, to: log.length }, hashAt, ranges);
  const read = unread?.from ?? log.length;
  const kept = log.turnStarts.at(-keepTurns - 1) ?? 0;
  const to = log.turnStarts.findLast((start) => start <= Math.min(read, kept)) ?? 0;
  if (to === 0) return undefined;
  const memories = await store.bySource(id, sessionId, options);
  // A source has the hash at the end of the range in which it was read. If this is a hash of another branch or of a later message, the
  // source is ignored. The hash of an approved message is in no range, so its source counts.
  const otherHashes = new Set(note.ranges.flatMap(hashesOf));
  for (let position = 1; position <= read; position++) otherHashes.delete(hashAt(position));
  const isSaidBefore = ({ id: source, to = 0, sha256 }: MemorySource) =>
    source === sessionId && to <= read && !otherHashes.has(shortHash(sha256));
  const facts = memories.filter((memory) => holdsAt(memory, now()) && memory.sources.some(isSaidBefore));
  if (facts.length === 0) return undefined;
  const texts = facts.toSorted((a, b) => compareSaid(a, b, sessionId)).map(({ text }) => text);
  return { texts, to, sha256: log.prefixHash(to) };
}

/** Sorts by the time at which the session last stated the fact, oldest first. */
function compareSaid(a: Memory, b: Memory, sessionId: string): number {
  const [x, y] = [a, b].map(({ sources }) => sources.findLast(({ id }) => id === sessionId)!);
  return Date.parse(x!.at) - Date.parse(y!.at) || (x!.from ?? 0) - (y!.from ?? 0);
}
