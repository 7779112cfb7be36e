/** A caller's value may throw when it is read. That is the caller's error, reported without the thrown message. */
import { genkit } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { expect, test } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { user } from '../support/helpers.ts';

const thrown = new Error('secret words');

/** An object whose member `name` throws when it is read. */
function withGetter(name: string, more: object = {}): object {
  const get = (): never => {
    throw thrown;
  };
  return Object.defineProperty({ ...more }, name, { get, enumerable: true });
}

/** An object that throws on every access. */
function trap(): object {
  const throws = (): never => {
    throw thrown;
  };
  return new Proxy({}, { get: throws, ownKeys: throws, getPrototypeOf: throws, getOwnPropertyDescriptor: throws });
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function cycle(): object {
  const value: { next?: object } = {};
  value.next = value;
  return value;
}

function setUp() {
  const ai = genkit({});
  const scripted = scriptedModel(ai, { otherwise: 'ok' });
  const bare = defineAgent(ai, { name: 'bare', model: scripted.name, signState: false });
  const stored = defineAgent(ai, { name: 'stored', model: scripted.name, store: new InMemorySessionStore() });
  const remote = remoteAgent({
    url: 'http://agents.test/a',
    fetch: () => Promise.reject(new Error('Not to be asked.')),
  });
  return { scripted, agents: [bare, stored, remote] };
}

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error('The call went through.');
}

function expectRefusal(error: unknown, place: string): void {
  expect(error).toMatchObject({ name: 'AgentError', status: 'INVALID_ARGUMENT' });
  const { message, details } = error as { message: string; details?: unknown };
  expect(message).toContain(place);
  expect(JSON.stringify([message, details])).not.toContain('secret');
}

const STARTS: [name: string, init: object, place: string][] = [
  ['custom of the state', { state: withGetter('custom') }, '/state/custom'],
  ['a member of custom', { state: { custom: { a: withGetter('b') } } }, '/state/custom/a/b'],
  ['messages of the state', { state: withGetter('messages') }, '/state/messages'],
  ['the whole state', { state: trap() }, '/state'],
  ['the artifacts', { state: { artifacts: trap() } }, '/state/artifacts'],
  ['the messages, revoked', { state: { messages: revoked() } }, '/state/messages'],
  ['the snapshotId', withGetter('snapshotId'), '/snapshotId'],
  ['a BigInt', { state: { custom: [{ big: 1n }] } }, '/state/custom/0/big'],
  ['a value that contains itself', { state: { custom: cycle() } }, '/state/custom/next/next'],
  ['the whole init', trap(), 'chat'],
];

test.each(STARTS)('chat: %s that throws, or is not JSON, is refused', async (_, init, place) => {
  const { agents, scripted } = setUp();
  for (const agent of agents) {
    expectRefusal(await errorOf(() => agent.chat(init).send('x')), place);
  }
  expect(scripted.requests).toEqual([]);
});

const INPUTS: [name: string, input: object, place: string][] = [
  ['the message', withGetter('message'), '/message'],
  ['the content', { message: withGetter('content', { role: 'user' }) }, '/message/content'],
  ['a text', { message: { role: 'user', content: [withGetter('text')] } }, '/message/content/0/text'],
  ['resume', withGetter('resume', { message: user('x') }), '/resume'],
  ['respond', { resume: withGetter('respond') }, '/resume/respond'],
  ['the whole input', trap(), 'send'],
  ['the whole input, revoked', revoked(), 'send'],
];

test.each(INPUTS)('a turn: %s that throws is refused, and the chat continues', async (_, input, place) => {
  const { agents } = setUp();
  for (const agent of agents) {
    const chat = agent.chat();
    expectRefusal(await errorOf(() => chat.send(input)), place);
    expectRefusal(await errorOf(() => chat.sendStream(input).response), place);
    expectRefusal(await errorOf(() => chat.detach(input)), place);
    expect(chat.messages).toEqual([]);
  }
  const chat = agents[1]!.chat();
  await errorOf(() => chat.send(input));
  expect((await chat.send('x')).text).toBe('ok');
});

test('options of a turn that throw are refused', async () => {
  const { agents } = setUp();
  for (const agent of agents) {
    for (const options of [withGetter('model'), withGetter('config'), { config: withGetter('a') }, trap()]) {
      expectRefusal(await errorOf(() => agent.chat().send('x', options)), 'send');
    }
  }
});

test('a lookup that throws is refused', async () => {
  const { agents } = setUp();
  for (const agent of agents) {
    for (const lookup of [withGetter('sessionId'), trap()]) {
      expectRefusal(await errorOf(() => agent.loadChat(lookup as { sessionId: string })), 'loadChat');
    }
  }
});

test('the error that was thrown is the cause', async () => {
  const { agents } = setUp();
  expect(await errorOf(() => agents[0]!.chat({ state: withGetter('custom') }))).toMatchObject({ cause: thrown });
});
