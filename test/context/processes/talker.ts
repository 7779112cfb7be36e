/** An agent whose conversation grows far beyond what its model accepts. */
import { genkit, GenkitError } from 'genkit';
import { defineAgent, type SessionStore } from 'genkitx-agents';
import { contextWindow, summarize } from 'genkitx-agents/context';
import { Random } from '../../support/random.ts';
import { scriptedModel } from '../../support/scripted-model.ts';

/** Tokens that the model accepts, as it counts them. */
export const LIMIT = 8_000;

/** What happens on the way of a conversation. */
export type TalkEvent = 'asked' | 'refused' | 'answered' | 'summarizing' | 'saved';

const WORDS = ['order', 'Lieferung', '订单', 'const x = 1;', 'refund', 'Größe', '{"id":"a7f3"}', 'thanks', '42.10'];

/** The model counts in its own way: a token for each three bytes. */
const tokensOf = (value: unknown) => Math.ceil(Buffer.byteLength(JSON.stringify(value)) / 3);

/** What one process does. */
export interface TalkerOptions {
  readonly store: SessionStore;
  readonly seed: number;
  readonly note: (event: TalkEvent) => void;
  /** Lets so much time pass, in ms: pauses and leases end as they do in a conversation of people. */
  readonly pass: (ms: number) => void;
}

/** An agent that knows nothing but what is in the store. Answers a function that has one turn. */
export function openTalker({ store, seed, note, pass }: TalkerOptions): () => Promise<void> {
  const random = new Random(seed);
  const ai = genkit({});
  const say = (most: number) => Array.from({ length: 1 + random.below(most) }, () => random.pick(WORDS)).join(' ');
  const model = scriptedModel(ai, {
    otherwise: async ({ request }) => {
      note('asked');
      const inputTokens = tokensOf(request.messages.map(({ content }) => content));
      if (inputTokens > LIMIT) {
        note('refused');
        const message = `prompt is too long: ${inputTokens} tokens > ${LIMIT} maximum`;
        throw new GenkitError({ status: 'INVALID_ARGUMENT', message });
      }
      note('answered');
      return {
        message: { role: 'model', content: [{ text: say(250) }] },
        finishReason: 'stop',
        usage: { inputTokens },
      };
    },
  });
  const summarizer = async () => {
    note('summarizing');
    if (random.below(4) === 0) throw new Error('The summarizer is down.');
    return { text: `They talked about orders. ${say(100)}`, usage: { outputTokens: 1 } };
  };
  // The window believes that the model takes more, and summaries come too late to spare it the lesson.
  const context = contextWindow({ maxTokens: 12_000, history: [summarize({ everyTurns: 30, summarizer })] });
  const agent = defineAgent(ai, { name: 'talker', model: model.name, system: 'Be brief.', store, context });
  return async () => {
    await agent.chat({ sessionId: 'long' }).send(say(60));
    note('saved');
    // Sometimes the next turn comes at once.
    if (random.below(3) === 0) return;
    await context.settled();
    pass(60_000);
  };
}
