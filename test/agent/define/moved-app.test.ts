/** An application of `genkit/beta`, moved by changing its one import. */
import { GenkitError as GenkitErrorOfGenkit } from 'genkit';
import { expect, test } from 'vitest';
import {
  defineCustomAgent,
  genkit,
  GenkitBeta,
  GenkitError,
  InMemorySessionStore,
  UserFacingError,
  z,
  type AgentFn,
  type MessageData,
  type PromptConfig,
  type SessionState,
} from 'genkitx-agents';

test('an application moves from genkit/beta by changing its import', async () => {
  const ai = genkit({});
  expect(ai).toBeInstanceOf(GenkitBeta);
  expect(new UserFacingError('NOT_FOUND', 'x')).toBeInstanceOf(GenkitErrorOfGenkit);
  expect(GenkitError).toBe(GenkitErrorOfGenkit);
  const prompt: PromptConfig = { name: 'p' };
  expect(prompt.name).toBe('p');
  const state: SessionState<{ n: number }> = { custom: { n: 1 } };
  const reply: MessageData = { role: 'model', content: [{ text: 'hi' }] };
  const fn: AgentFn<{ n: number }> = async (sess) => {
    await sess.run(async () => sess.updateCustom((custom) => ({ n: (custom?.n ?? 0) + 1 })));
    return { message: reply };
  };
  const stateSchema = z.object({ n: z.number() });
  const kept = ai.defineCustomAgent({ name: 'kept', stateSchema, store: new InMemorySessionStore() }, fn);
  expect((await kept.chat().send('hello')).text).toBe('hi');
  const sent = ai.defineCustomAgent({ name: 'sent', stateSchema }, fn);
  const chat = sent.chat({ state });
  await chat.send('hello');
  expect(chat.state).toEqual({ n: 2 });
});

test.each([
  [{ name: 'a', store: {} }, 'defineCustomAgent: store must be a session store, with getSnapshot and saveSnapshot.'],
  [{ name: 'a', stateSchema: { type: 'object' } }, "stateSchema must be a Zod schema, made with genkit's z."],
  [{ name: 'a', stor: 1 }, "defineCustomAgent has no option 'stor'"],
  [
    { name: 'a', clientTransform: { state: 1 } },
    "clientTransform must be an object with functions 'state' and 'chunk'.",
  ],
  [null, 'defineCustomAgent needs a configuration.'],
])('an agent is not defined by %j', (config, message) => {
  expect(() => defineCustomAgent(genkit({}), config as never, async () => ({}))).toThrow(message);
});

test('the other two definers check their configuration as well', () => {
  const ai = genkit({});
  expect(() => ai.definePromptAgent({ promptName: 'p', stor: 1 } as never)).toThrow("has no option 'stor'");
  expect(() => ai.defineAgent({ name: 'a', store: { getSnapshot: () => {} } } as never)).toThrow('a session store');
});
