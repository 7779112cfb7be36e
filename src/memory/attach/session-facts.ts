import type { MessageData } from 'genkit';
import { MessageLog } from '../../session/log/message-log.ts';
import type { SessionFacts } from '../../session/turn-memory.ts';
import type { Memory, MemoryStore } from '../../store/memory/contract.ts';
import { sourceNoteKey } from '../pipeline/guard/gate.ts';
import { parseSourceNote, shortHash, unreadRanges } from '../pipeline/ingest/ranges.ts';
import { NOTES } from '../pipeline/pipeline.ts';
import { targetOf, type MemoryScope } from '../scopes.ts';
import { holdsAt } from '../search/score.ts';

/**
 * What was learned from the first messages of a session, as far as all of them were read; two reads. Messages of another branch of the
 * session do not count.
 */
export async function sessionFacts(
  store: MemoryStore,
  scope: MemoryScope,
  sessionId: string,
  messages: readonly MessageData[],
): Promise<SessionFacts | undefined> {
  const { id, context } = targetOf(scope);
  const options = context === undefined ? {} : { context };
  const key = sourceNoteKey(sessionId);
  const { notes } = await store.notes(id, NOTES.pipeline, { ...options, keys: [key] });
  const log = MessageLog.of(messages);
  const whole = { from: 0, to: log.completeTo };
  const { ranges } = parseSourceNote(notes[0]?.value);
  if (ranges.length === 0) return undefined;
  const [unread] = unreadRanges(whole, (position) => shortHash(log.prefixHash(position)), ranges);
  const to = startOfTurn(log, unread?.from ?? whole.to);
  if (to === 0) return undefined;
  const memories = await store.bySource(id, sessionId, options);
  const facts = memories.filter((memory) => holdsAt(memory, Date.now()) && isSaidBefore(memory, sessionId, to));
  if (facts.length === 0) return undefined;
  return { text: facts.map(({ text }) => `- ${text}`).join('\n'), to, sha256: log.prefixHash(to) };
}

/** The last position, at most `to`, at which a turn begins; or the end of all. */
function startOfTurn({ turnStarts, length }: MessageLog, to: number): number {
  return to === length ? to : (turnStarts.findLast((start) => start <= to) ?? 0);
}

function isSaidBefore({ sources }: Memory, sessionId: string, position: number): boolean {
  return sources.some(({ id, from = 0 }) => id === sessionId && from < position);
}
