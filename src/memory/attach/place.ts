import type { GenerateRequest, MessageData } from 'genkit';
import { dataMessage, dataText, withSystemData, type DataPlace } from '../../session/log/data-text.ts';
import type { MemoryBlock } from '../../session/turn-memory.ts';

/**
 * Returns the request with each block of memories at its place. Does not change its arguments.
 *
 * @param origins For each message of the request, the session's message that it comes from; `undefined` for a message of the prompt.
 */
export function placeBlocks(
  request: GenerateRequest,
  origins: readonly (MessageData | undefined)[],
  blocks: readonly MemoryBlock[],
): GenerateRequest {
  const textsAt = (place: DataPlace) =>
    blocks
      .filter((block) => block.place === place && block.items.length > 0)
      .map(({ title, items }) => {
        const texts = items.map(({ text }) => text);
        return dataText(title, texts);
      });
  const messages = [...request.messages];
  const insert = (at: number, texts: string[]) => {
    if (texts.length === 0) return;
    const { content, role } = dataMessage(texts);
    const next = messages[at];
    // Joined with the user's message: some models accept no two messages of one role in a row.
    if (next?.role === role) messages[at] = { ...next, content: [...content, ...next.content] };
    else messages.splice(Math.max(0, at), 0, { role, content });
  };
  const promptAt = origins.findLastIndex((origin) => origin?.role === 'user');
  const historyAt = origins.findIndex((origin) => origin !== undefined);
  // Inserts at the later place first, so that the earlier index stays valid.
  insert(promptAt, textsAt('before-prompt'));
  insert(historyAt, textsAt('before-history'));
  return { ...request, messages: [...withSystemData(messages, textsAt('system'))] };
}
