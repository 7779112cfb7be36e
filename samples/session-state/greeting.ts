import { defineAgent, genkit, InMemorySessionStore, SessionService, type Json } from 'genkitx-agents';

/** A session's state before and after. */
export interface StateChange {
  before: { readonly [key: string]: Json };
  after: { readonly [key: string]: Json };
}

/** The easy way to store a value: each reply is stored under the key `outputKey`. */
export async function greet(): Promise<StateChange> {
  const ai = genkit({});
  // A stand-in for a real model, so that the sample runs anywhere.
  ai.defineModel({ apiVersion: 'v2', name: 'greeter-model' }, async () => ({
    message: { role: 'model', content: [{ text: 'Hello there! How can I help you today?' }] },
    finishReason: 'stop',
  }));

  const store = new InMemorySessionStore();
  const sessions = new SessionService(store);
  const greeter = defineAgent(ai, {
    name: 'Greeter',
    model: 'greeter-model',
    system: 'Generate a short, friendly greeting.',
    store,
    appName: 'state_app',
    outputKey: 'last_greeting',
  });

  const key = { appName: 'state_app', userId: 'user1', sessionId: 'session1' };
  const session = await sessions.createSession(key);
  await greeter.chat({ sessionId: session.id }, { context: { auth: { uid: session.userId } } }).send('Hello');
  const updated = await sessions.getSession(key);
  return { before: session.state, after: updated!.state };
}
