/**
 * One way to run a turn, in a process of its own: our agent, Genkit's agent, `ai.generate` with the same history, or only the parts of Genkit
 * that every agent needs. Started by `runtime.ts` only.
 */
import { randomUUID } from 'node:crypto';
import {
  AgentInitSchema,
  AgentInputSchema,
  AgentOutputSchema,
  AgentStreamChunkSchema,
  generateMiddleware,
} from '@genkit-ai/ai';
import { defineBidiAction } from '@genkit-ai/core';
import { genkit, InMemorySessionStore as GenkitInMemoryStore, type MessageData } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { runInNewSpan } from 'genkit/tracing';
import { timed } from './measure.ts';

/** The kind of a contender. */
export interface RuntimeSpec {
  name: string;
  kind: 'ours' | 'genkit' | 'generate' | 'pieces';
}

/** Plays this number of turns, in a new chat or in the long one; returns the ms. */
export interface RuntimeRequest {
  turns: number;
  chat: 'new' | 'long';
}

const spec = JSON.parse(process.argv[2]!) as RuntimeSpec;
const SYSTEM = 'Help customers understand their order status.';
/** About 75 tokens. The reply has 50. */
const QUESTION = 'Where is my order, please? '.repeat(11);
const REPLY = Array.from({ length: 50 }, (_, i) => `word${i}`).join(' ');

const ai = genkit({});
ai.defineModel({ name: 'fixed', apiVersion: 'v2' }, async () => ({
  message: { role: 'model', content: [{ text: REPLY }] },
  finishReason: 'stop',
}));

interface Chat {
  send(text: string): Promise<unknown>;
}

/** An application without agents, which keeps the history itself. */
function bareChat(): Chat {
  const messages: MessageData[] = [];
  return {
    send: async (text) => {
      messages.push({ role: 'user', content: [{ text }] });
      const { text: reply } = await ai.generate({ model: 'fixed', system: SYSTEM, messages: [...messages] });
      messages.push({ role: 'model', content: [{ text: reply }] });
    },
  };
}

/**
 * Only the parts that every agent needs: the action, the turn's span, the prompt's rendering, and an observed `generate` that can be aborted.
 * The history is an array in memory; nothing is copied or saved.
 */
function piecesChat(): () => Chat {
  const prompt = ai.definePrompt({ name: 'agent', model: 'fixed', system: SYSTEM });
  const watch = generateMiddleware({ name: 'watch' }, () => ({
    model: (request, options, next) => next(request, options),
  }));
  const sessions = new Map<string, MessageData[]>();
  const action = defineBidiAction(
    ai.registry,
    {
      name: 'pieces',
      actionType: 'agent',
      inputSchema: AgentInputSchema,
      outputSchema: AgentOutputSchema,
      streamSchema: AgentStreamChunkSchema,
      initSchema: AgentInitSchema,
    },
    // oxlint-disable-next-line require-yield
    async function* ({ init, inputStream, sendChunk, abortSignal }) {
      const messages = sessions.get(init.sessionId!) ?? [];
      for await (const input of inputStream) {
        messages.push(input.message!);
        await runInNewSpan({ metadata: { name: 'runTurn-1', input } }, async () => {
          const rendered = await prompt.render({}, { messages: [] });
          const { message } = await ai.generate({
            ...rendered,
            messages: [...rendered.messages!, ...messages],
            use: [watch()],
            abortSignal,
            onChunk: (chunk) => sendChunk({ modelChunk: chunk.toJSON() }),
          });
          messages.push(message!.toJSON());
        });
      }
      return { message: messages.at(-1), finishReason: 'stop' as const };
    },
  );
  return () => {
    const sessionId = randomUUID();
    sessions.set(sessionId, []);
    return {
      send: (text) => {
        const { signal } = new AbortController();
        const message = { role: 'user' as const, content: [{ text }] };
        return action.run({ message }, { init: { sessionId }, abortSignal: signal, onChunk: () => {} });
      },
    };
  };
}

function chatMaker(): () => Chat {
  const config = { name: 'agent', model: 'fixed', system: SYSTEM };
  if (spec.kind === 'generate') return bareChat;
  if (spec.kind === 'pieces') return piecesChat();
  const agent =
    spec.kind === 'ours'
      ? defineAgent(ai, { ...config, store: new InMemorySessionStore() })
      : ai.defineAgent({ ...config, store: new GenkitInMemoryStore() });
  return () => agent.chat();
}

const newChat = chatMaker();
const long = newChat();

process.on('message', ({ turns, chat }: RuntimeRequest) => {
  const playing = chat === 'new' ? newChat() : long;
  const play = async () => {
    for (let turn = 0; turn < turns; turn++) await playing.send(QUESTION);
  };
  timed(play).then(
    (value) => process.send!({ value }),
    (error: unknown) => process.send!({ error: String(error) }),
  );
});
process.send!({ value: 0 });
