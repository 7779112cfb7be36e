import { z, type ActionContext } from 'genkit';
import { currentSession, type AgentsGenkit, type SessionSummary, type SnapshotStore } from 'genkitx-agents';
import type { AttachedMemory, Memory, MemoryManager } from 'genkitx-agents/memory';
import type { SupportState } from '../state.ts';

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

export interface ForgetCustomerOptions {
  memory: MemoryManager;
  attached: AttachedMemory;
  /** Where the customer's conversations are. */
  store: SnapshotStore<SupportState>;
}

/** Forgets all that is remembered of the customer who is signed in. */
export function defineForgetCustomer(ai: AgentsGenkit, { memory, attached, store }: ForgetCustomerOptions) {
  return ai.defineTool(
    {
      name: 'forgetCustomer',
      description:
        'Forgets all that is remembered of the signed-in customer, for good. Only when the customer asked to be forgotten. It changes no order.',
      inputSchema: z.object({}),
      outputSchema: z.object({ forgotten: z.number() }),
    },
    async (_input, { context }) => {
      const scope = memory.scopeFor('user', { context });
      const sources = new Set([currentSession().sessionId]);
      for await (const { sessionId } of sessionsOf(store, context)) sources.add(sessionId);
      // Makes jobs of messages that were not read yet. forgetSource removes the jobs, and the messages then count as read.
      for (const sessionId of sources) await attached.endSession({ sessionId, context }).catch(ignoreNotFound);
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

/** The conversations of the customer who is signed in. */
async function* sessionsOf(
  store: SnapshotStore<SupportState>,
  context: ActionContext | undefined,
): AsyncGenerator<SessionSummary> {
  const ownerId = context?.auth?.['uid'] as string;
  let cursor: string | undefined;
  do {
    const page = await store.listSessions({ ownerId, context, ...(cursor !== undefined && { cursor }) });
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}

/** A conversation is in no store in its first turn, and may be deleted meanwhile. */
function ignoreNotFound(error: { status?: string }): void {
  if (error.status !== 'NOT_FOUND') throw error;
}

function reasonFor({ sources }: Memory): string {
  const { type, at } = sources.at(-1)!;
  const day = at.slice(0, 10);
  return type === 'explicit' ? `You asked me to remember it on ${day}.` : `You said so in a conversation on ${day}.`;
}
