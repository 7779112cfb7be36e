import { z } from 'genkit';
import type { AgentsGenkit } from 'genkitx-agents';
import type { Memory, MemoryManager } from 'genkitx-agents/memory';

const OutputSchema = z.object({ memories: z.array(z.object({ memory: z.string(), why: z.string() })) });

export type ShowMemoriesOutput = z.infer<typeof OutputSchema>;

/** Lists all memories of the signed-in customer, with the reason for each. */
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

/** Removes all memories of the signed-in customer. Earlier messages are not learned again. */
export function defineForgetCustomer(ai: AgentsGenkit, memory: MemoryManager) {
  return ai.defineTool(
    {
      name: 'forgetCustomer',
      description:
        'Forgets all that is remembered of the signed-in customer, permanently. Only when the customer asked to be forgotten. It changes no order.',
      inputSchema: z.object({}),
      outputSchema: z.object({ forgotten: z.number() }),
    },
    async (_input, { context }) => {
      const { memories } = await memory.erase({ scope: memory.scopeFor('user', { context }) });
      return { forgotten: memories };
    },
  );
}

function reasonFor({ sources }: Memory): string {
  const { type, at } = sources.at(-1)!;
  const day = at.slice(0, 10);
  return type === 'explicit' ? `You asked me to remember it on ${day}.` : `You said so in a conversation on ${day}.`;
}
