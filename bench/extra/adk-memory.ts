/** The in-memory memory service of Google's Agent Development Kit, for `../memory/main.ts`. */
import type { Dialogue } from '../memory/corpus.ts';

/** The used part of it. It is installed only for the bench, so the type check can't use its types. */
interface Adk {
  InMemoryMemoryService: new () => {
    addSessionToMemory(session: object): Promise<void>;
    searchMemory(request: { appName: string; userId: string; query: string }): Promise<{
      memories: { content: { parts: { id: string }[] } }[];
    }>;
  };
  createEvent: (params: object) => object;
}

const OWNER = { appName: 'bench', userId: 'one' };

/** Finds the ids of messages, in the order of the service. */
export async function adkMemory({ messages }: Dialogue): Promise<(query: string) => Promise<string[]>> {
  const name = '@google/adk';
  const { InMemoryMemoryService, createEvent } = (await import(name)) as Adk;
  const service = new InMemoryMemoryService();
  for (const session of new Set(messages.map((message) => message.session))) {
    const said = messages.filter((message) => message.session === session);
    const events = said.map(({ id, speaker, text, at }) =>
      createEvent({
        author: speaker,
        timestamp: Date.parse(at),
        content: { role: 'user', parts: [{ text: `${speaker}: ${text}`, id }] },
      }),
    );
    await service.addSessionToMemory({ ...OWNER, id: `${session}`, events });
  }
  return async (query) => {
    const { memories } = await service.searchMemory({ ...OWNER, query });
    return memories.map(({ content }) => content.parts[0]!.id);
  };
}
