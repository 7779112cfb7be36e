/** The agents that the tests of client and server talk to, made by Genkit's runtime or by ours. */
import { z } from 'genkit';
import {
  genkit as genkitOfGenkit,
  InMemorySessionStore as StoreOfGenkit,
  type Agent,
  type GenkitBeta,
  type SessionStore,
} from 'genkit/beta';
import { genkit, InMemorySessionStore } from 'genkitx-agents';

/** The runtime of the agents. */
export interface Maker {
  name: string;
  genkit: () => GenkitBeta;
  store: <State>() => SessionStore<State>;
  /** Its agents run turns in the background. */
  detaches: boolean;
  /** Its agents stop when their caller disconnects. */
  stops: boolean;
}

export const makers: Maker[] = [
  {
    name: "Genkit's agents",
    genkit: () => genkitOfGenkit({}),
    store: <State>() => new StoreOfGenkit<State>(),
    detaches: true,
    stops: false,
  },
  {
    name: 'our agents',
    genkit: () => genkit({}),
    store: <State>() => new InMemorySessionStore<State>(),
    detaches: true,
    stops: true,
  },
];

export interface Counter {
  count: number;
  label?: string;
}

/** A promise and how to settle it. */
export interface Gate {
  opened: Promise<void>;
  open: () => void;
}

export function gate(): Gate {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** The parts of the agents that the tests read and control. */
interface Controls {
  /** Contexts of the turns, in order. */
  contexts: unknown[];
  /** Reached by a turn of the agent `slow`. */
  slowStarted: Gate;
  /** Lets it continue. */
  slowMayEnd: Gate;
  /** Its signal was aborted. */
  slowStopped: Gate;
}

export interface TestAgents {
  agents: Record<string, Agent<never>>;
  controls: Controls;
}

/**
 * Offline model. A text that is a command runs it; any other is answered by `#<n> You said: <text>`, n counting the user's
 * messages, in chunks of three characters.
 */
function defineScriptedModel(ai: GenkitBeta): void {
  ai.defineModel({ name: 'scripted', apiVersion: 'v2' }, async (request, { sendChunk }) => {
    const last = request.messages.at(-1);
    const part = last?.content.at(-1);
    if (part?.toolResponse) {
      return reply([{ text: `The tool said: ${JSON.stringify(part.toolResponse.output)}` }]);
    }
    const text = part?.text ?? '';
    if (text === 'ask' || text === 'confirm') {
      const input = text === 'ask' ? { question: 'Sure?' } : { action: 'delete' };
      return reply([{ toolRequest: { name: text, ref: 'r1', input } }]);
    }
    if (text.startsWith('crash ')) {
      throw new Error(text.slice('crash '.length));
    }
    const turns = request.messages.filter(({ role }) => role === 'user').length;
    const answer = `#${turns} You said: ${text}`;
    for (const piece of answer.match(/.{1,3}/gsu) ?? []) {
      sendChunk({ index: 0, content: [{ text: piece }] });
    }
    return reply([{ text: answer }]);
  });
}

type ReplyPart = { text: string } | { toolRequest: { name: string; ref: string; input: unknown } };

function reply(content: ReplyPart[]) {
  return { message: { role: 'model' as const, content }, finishReason: 'stop' as const };
}

export function makeAgents(maker: Maker): TestAgents {
  const ai = maker.genkit();
  defineScriptedModel(ai);
  const controls: Controls = { contexts: [], slowStarted: gate(), slowMayEnd: gate(), slowStopped: gate() };
  const counterSchema = z.object({ count: z.number(), label: z.string().optional() });
  const ask = ai.defineInterrupt({
    name: 'ask',
    description: 'Asks the user.',
    inputSchema: z.object({ question: z.string() }),
    outputSchema: z.object({ answer: z.string() }),
  });
  const confirm = ai.defineTool(
    { name: 'confirm', description: 'Needs an approval.', inputSchema: z.object({ action: z.string() }) },
    async ({ action }, { interrupt, resumed }) =>
      resumed ? `${action} approved by ${JSON.stringify(resumed)}` : interrupt({ why: 'dangerous' }),
  );

  /** Counts up, streams each step, and replies `done`; throws midway on command. */
  const defineCounter = (name: string, store?: SessionStore<Counter>) =>
    ai.defineCustomAgent<Counter>(
      { name, stateSchema: counterSchema, store },
      async (session, { sendChunk, context }) => {
        await session.run(async ({ message }) => {
          controls.contexts.push(context);
          const text = message?.content[0]?.text ?? '';
          session.updateCustom((state) => ({ count: (state?.count ?? 0) + 1 }));
          sendChunk({ modelChunk: { content: [{ text: 'do' }] } });
          if (text.startsWith('crash ')) {
            throw new Error(text.slice('crash '.length));
          }
          session.updateCustom((state) => ({ count: state?.count ?? 0, label: text }));
          session.addArtifacts([{ name: 'note', parts: [{ text }] }]);
          sendChunk({ modelChunk: { content: [{ text: 'ne' }] } });
          session.addMessages([{ role: 'model', content: [{ text: 'done' }] }]);
        });
        return { message: session.getMessages().at(-1), artifacts: session.getArtifacts(), finishReason: 'stop' };
      },
    );

  const slow = ai.defineCustomAgent(
    { name: 'slow', store: maker.store() },
    async (session, { sendChunk, abortSignal }) => {
      await session.run(async () => {
        abortSignal?.addEventListener('abort', controls.slowStopped.open);
        sendChunk({ modelChunk: { content: [{ text: 'started' }] } });
        controls.slowStarted.open();
        await controls.slowMayEnd.opened;
        session.addMessages([{ role: 'model', content: [{ text: 'ended' }] }]);
      });
      return { message: session.getMessages().at(-1), finishReason: 'stop' };
    },
  );

  const agents = {
    chatty: ai.defineAgent({ name: 'chatty', model: 'scripted', store: maker.store() }),
    forgetful: ai.defineAgent({ name: 'forgetful', model: 'scripted' }),
    careful: ai.defineAgent({
      name: 'careful',
      model: 'scripted',
      tools: [ask, confirm],
      store: maker.store(),
    }),
    counter: defineCounter('counter', maker.store()),
    clientCounter: defineCounter('clientCounter'),
    slow,
  };
  return { agents: agents as unknown as Record<string, Agent<never>>, controls };
}
