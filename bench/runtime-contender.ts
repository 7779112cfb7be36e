/**
 * One way to take a turn, in a process of its own: an agent of ours, one of Genkit's, or `ai.generate` with the same history. Started by
 * `runtime.ts` only.
 */
import { genkit, InMemorySessionStore as GenkitInMemoryStore, type MessageData } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { timed } from './measure.ts';

/** What a contender is. */
export interface RuntimeSpec {
  name: string;
  kind: 'ours' | 'genkit' | 'generate';
}

/** Plays so many turns, of a chat of their own or of the one that goes on; answers the ms. */
export interface RuntimeRequest {
  turns: number;
  chat: 'new' | 'long';
}

const spec = JSON.parse(process.argv[2]!) as RuntimeSpec;
const SYSTEM = 'Help customers understand their order status.';
/** About 75 tokens, and a reply of 50. */
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

/** What an application without agents does: it keeps the history itself. */
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

function chatMaker(): () => Chat {
  const config = { name: 'agent', model: 'fixed', system: SYSTEM };
  if (spec.kind === 'generate') return bareChat;
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
