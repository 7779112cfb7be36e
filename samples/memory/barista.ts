import { z } from 'genkit';
import { defineAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import { InMemoryMemoryStore, memoryManager, type MemoryTopic } from 'genkitx-agents/memory';
import { scriptedModel } from 'genkitx-agents/testing';

/** A topic of the shop's owner, with a schema, and with examples of facts to remember. */
const FEEDBACK: MemoryTopic = {
  label: 'business_feedback',
  description: 'Opinions on drinks, staff, prices and the place itself.',
  schema: z.object({ about: z.enum(['drinks', 'staff', 'prices', 'place']), isPraise: z.boolean() }),
  examples: [
    {
      said: 'The cortado was perfect, but the music is far too loud.',
      memories: [
        { text: 'The customer found the cortado perfect.', data: { about: 'drinks', isPraise: true } },
        { text: 'The customer finds the music too loud.', data: { about: 'place', isPraise: false } },
      ],
    },
    { said: 'A cortado, please. Nice weather today!', memories: [] },
  ],
};

/** The answers of the model that extracts facts. A real model gets the topic, its examples and its schema. */
const LEARNED = JSON.stringify({
  memories: [
    { text: 'The customer drinks flat whites with oat milk.', topics: ['USER_PREFERENCES'], messages: [0] },
    {
      text: 'The customer does not tolerate cow milk.',
      topics: ['USER_PERSONAL_INFORMATION'],
      messages: [0],
      importance: 0.9,
    },
    {
      text: 'The customer finds the new prices steep.',
      topics: ['business_feedback'],
      messages: [2],
      data: { about: 'prices', isPraise: false },
    },
  ],
});

/** The model's answer to the question whether these facts repeat or contradict each other, or known ones: all are new. */
const DECIDED = JSON.stringify({ operations: [1, 2, 3].map((fact) => ({ new: fact, op: 'CREATE' })) });

/** Two visits of a customer. The second conversation does not contain the first one. */
export async function serveTwice() {
  const ai = genkit();
  const learner = scriptedModel(ai, { name: 'learner', replies: [LEARNED, DECIDED] });
  const speaker = scriptedModel(ai, {
    name: 'speaker',
    replies: [
      'One flat white with oat milk, coming up!',
      'I will pass that on.',
      ({ request }) => {
        const asked = JSON.stringify(request.messages);
        return asked.includes('oat milk') ? 'A flat white with oat milk, as always?' : 'What is your usual?';
      },
    ],
  });
  const memory = memoryManager(ai, {
    store: new InMemoryMemoryStore(),
    model: learner.name,
    topics: ['USER_PREFERENCES', 'USER_PERSONAL_INFORMATION', FEEDBACK],
  });
  const attached = memory.attach({ scope: 'user', preload: { k: 5, maxTokens: 500 } });
  const barista = defineAgent(ai, {
    name: 'barista',
    model: speaker.name,
    system: 'You are the barista of a small coffee shop. Be warm and brief.',
    store: new InMemorySessionStore(),
    memory: attached,
  });
  const context = { auth: { uid: 'ada' } };

  const monday = barista.chat({}, { context });
  await monday.send('A flat white with oat milk, please. I can not have cow milk.');
  await monday.send('Your new prices are steep, by the way.');
  await attached.endSession({ sessionId: monday.sessionId!, context, wait: true });

  const tuesday = barista.chat({}, { context });
  const { text } = await tuesday.send('The same milk as always in my flat white, please.');

  const scope = memory.scopeFor('user', { context });
  const feedback = await memory.search({ scope, query: 'prices', topics: ['business_feedback'] });
  await memory.close();
  return {
    monday: monday.sessionId!,
    reply: text,
    placed: speaker.requests.at(-1)!.messages.at(-1)!,
    feedback: feedback.memories.map((found) => found.memory),
  };
}
