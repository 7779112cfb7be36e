import { z } from 'genkit';
import { currentSession, type AgentsGenkit } from 'genkitx-agents';
import type { AttachedMemory, Memory, MemoryManager } from 'genkitx-agents/memory';

const OutputSchema = z.object({ memories: z.array(z.object({ memory: z.string(), why: z.string() })) });

export type ShowMemoriesOutput = z.infer<typeof OutputSchema>;

/** Lists all that is remembered of the customer who is signed in, with the reason for each. */
export function defineShowMemories(ai: AgentsGenkit, memory: MemoryManager) {
  return ai.defineTool(
    {
      name: 'showMemories',
      description: 'Lists all that is remembered of the signed-in customer, and why. When the customer asks for that.',
      inputSchema: z.object({}),
      outputSchema: OutputSchema,
    },
    async (_input, { context }) => {
      const scope = memory.scopeFor('user', { context });
      const memories: ShowMemoriesOutput['memories'] = [];
      for await (const line of memory.export({ scope })) {
        if (line.memory && line.memory.validTo === undefined) {
          memories.push({ memory: line.memory.text, why: reasonFor(line.memory) });
        }
      }
      return { memories };
    },
  );
}

/** Forgets all that is remembered of the customer who is signed in. */
export function defineForgetCustomer(ai: AgentsGenkit, memory: MemoryManager, attached: AttachedMemory) {
  return ai.defineTool(
    {
      name: 'forgetCustomer',
      description:
        'Forgets all that is remembered of the signed-in customer, for good. Only when the customer asked to be forgotten. It changes no order.',
      inputSchema: z.object({}),
      outputSchema: z.object({ forgotten: z.number() }),
    },
    async (_input, { context }) => {
      const { sessionId } = currentSession();
      // What was said in this conversation counts as read then, so that it is not learned later.
      await attached.endSession({ sessionId, context, wait: true }).catch(ignoreNotFound);
      const scope = memory.scopeFor('user', { context });
      const sources = new Set([sessionId]);
      let forgotten = 0;
      for await (const { memory: known, revisions = [] } of memory.export({ scope })) {
        for (const { id } of [known, ...revisions].flatMap((one) => one?.sources ?? [])) sources.add(id);
        if (known) forgotten++;
      }
      // Not erase, after which conversations that go on would be learned from anew.
      for (const source of sources) await memory.forgetSource({ scope, source });
      return { forgotten };
    },
  );
}

/** The first turn of a conversation is in no store yet. */
function ignoreNotFound(error: { status?: string }): void {
  if (error.status !== 'NOT_FOUND') throw error;
}

function reasonFor({ sources }: Memory): string {
  const { type, at } = sources.at(-1)!;
  const day = at.slice(0, 10);
  return type === 'explicit' ? `You asked me to remember it on ${day}.` : `You said so in a conversation on ${day}.`;
}
