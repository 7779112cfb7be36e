import type { MemoryManager } from '../../../src/memory/manager.ts';
import type { MemoryExtractor } from '../../../src/memory/types.ts';
import { memoryScope } from '../../../src/memory/scopes.ts';

/** Extracts each message as a fact. */
export const echoTexts: MemoryExtractor = ({ messages }) => messages.map(({ content: [part] }) => part!.text!);

/**
 * Many sources state the same fact at once: two thirds as facts, the others in messages.
 *
 * @throws Error if a source is not counted.
 */
export async function corroborate(memory: MemoryManager, name: string, times: number): Promise<void> {
  const scope = memoryScope({ scope: 'user', appName: 'chat', userId: 'user0' });
  const text = 'The user prefers a window seat.';
  const results = await Promise.all(
    Array.from({ length: times }, (_, i) => {
      const said = i % 3 ? { memories: [text] } : { messages: [{ role: 'user' as const, content: [{ text }] }] };
      return memory.ingest({ scope, source: { id: `${name} ${i}` }, ...said, wait: true });
    }),
  );
  const missed = results.find(({ status }) => status !== 'committed');
  if (missed) throw new Error(`One of ${name} is ${missed.status}.`);
}
