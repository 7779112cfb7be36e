/** The samples that are deployed, on the Firestore emulator: processes that are started, driven over HTTP, ended, and started again. */
import { rmSync } from 'node:fs';
import { genkit } from 'genkitx-agents';
import { AgentError, remoteAgent } from 'genkitx-agents/client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FirestoreMemoryStore } from 'genkitx-agents/google-cloud';
import { memoryManager } from 'genkitx-agents/memory';
import { byUser, contextOf } from '../../samples/support/cloud/cloud-support.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { emulatorHost, newProject, openDatabase } from '../stores/firestore/support/database.ts';
import { cloudRun, firebase } from './support/deployments.ts';
import { packAndCopy } from './support/pack-and-copy.ts';
import { idToken } from './support/id-tokens.ts';
import { killInstances, type Instance } from './support/instance.ts';

/** A reply of two dozen words takes a second: SIGTERM comes in its middle, and it ends in time. */
const SLOW = { OFFLINE_PACE_MS: '40' };
/** It takes longer than it may go on. What is taken over then was handed over: no lease ends here. */
const TOO_SLOW = { OFFLINE_PACE_MS: '300', SHUTDOWN_GRACE_MS: '200', LEASE_MS: '3600000' };
const FAST = { LEASE_MS: '3600000', OFFLINE_PACE_MS: '0' };

const ENDED_WELL = { code: 0, signal: null };

const asked = (messages: readonly { role: string; content: { text?: string }[] }[] | undefined) =>
  messages?.filter(({ role }) => role === 'user').map(({ content }) => content[0]?.text);

const recall = async (support: ReturnType<typeof remoteAgent>) =>
  (await support.chat().send('What do you remember about me?')).text;

const thrownBy = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

beforeAll(() => void emulatorHost());
afterAll(killInstances);

describe.each([cloudRun, firebase])('$name', ({ start, path, credentials, recover }) => {
  const project = newProject();
  const db = openDatabase(project);
  const refunds = async () => (await db.collection('support-refunds').get()).docs.map((doc) => doc.data());
  let instance: Instance;
  const client = (uid: 'ada' | 'bob' = 'ada') => {
    const headers = { authorization: `Bearer ${credentials(project, uid)}` };
    return remoteAgent<SupportState>({ url: `${instance.url}${path}`, headers });
  };

  beforeAll(async () => {
    instance = await start(project, SLOW);
  });

  it('answers turns, and streams them', async () => {
    const chat = client().chat({ sessionId: 'mine' });
    expect((await chat.send('Where is order 1042?')).text).toContain('shipped');
    const turn = chat.sendStream('What is your refund policy?');
    const chunks: string[] = [];
    for await (const { text } of turn.stream) if (text) chunks.push(text);
    expect(chunks.length).toBeGreaterThan(5);
    expect(chunks.join('')).toBe((await turn.response).text);
  });

  it('refuses a caller who is not signed in with a typed 401', async () => {
    const url = `${instance.url}${path}`;
    const body = JSON.stringify({ data: { message: { role: 'user', content: [{ text: 'Hello' }] } } });
    const refused = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ error: { status: 'UNAUTHENTICATED' } });
    const error = await thrownBy(remoteAgent({ url }).chat().send('Hello'));
    expect(AgentError.isInstance(error) && error.status).toBe('UNAUTHENTICATED');
  });

  it("does not show a user the session of another, whose name is free for the user's own", async () => {
    const { snapshotId } = await client().loadChat({ sessionId: 'mine' });
    const bob = client('bob');
    expect(await bob.getSnapshot({ sessionId: 'mine' })).toBeUndefined();
    expect(await bob.getSnapshot({ snapshotId: snapshotId! })).toBeUndefined();
    await bob.chat({ sessionId: 'mine' }).send('Thanks');
    expect(asked((await bob.loadChat({ sessionId: 'mine' })).messages)).toEqual(['Thanks']);
    expect(asked((await client().loadChat({ sessionId: 'mine' })).messages)).toHaveLength(2);
  });

  it('remembers what a user asks it to, for that user only', async () => {
    const { text } = await client().chat().send('Remember that I prefer express delivery.');
    expect(text).toBe('It will be remembered, unless a check keeps it back.');
    await vi.waitFor(async () => expect(await recall(client())).toContain('express delivery'));
    expect(await recall(client('bob'))).toBe('I remember nothing of you.');
  });

  it("asks before it refunds the user's own order, and pays once", async () => {
    const chat = client().chat({ sessionId: 'refund' });
    const { interrupts } = await chat.send('Refund order 1035, it is late');
    expect(interrupts).toMatchObject([{ question: { orderId: '1035', amount: '€46.00' } }]);
    expect(await refunds()).toEqual([]);
    const { text } = await chat.resume({ restart: interrupts.map((question) => question.restart()) });
    expect(text).toContain('€46.00');
    const paid = await refunds();
    expect(paid).toMatchObject([{ refundId: 'R-1035', amount: 46 }]);
    const again = await client().chat({ sessionId: 'again' }).send('Refund order 1035, it is late');
    expect(again.text).toContain('refunded before');
    expect(await refunds()).toEqual(paid);

    const other = await client('bob').chat({ sessionId: 'other' }).send('Refund order 1031, it is late');
    expect(other.text).toContain('The customer who is signed in has no');
    expect(await refunds()).toEqual(paid);
  });

  it('finishes the turn that runs when SIGTERM comes, and goes on with the session after the restart', async () => {
    const chat = await client().loadChat({ sessionId: 'mine' });
    const turn = chat.sendStream('Can I get a refund for it?');
    await turn.stream[Symbol.asyncIterator]().next();
    const ended = instance.end();
    expect((await turn.response).text).toContain('on its way');
    expect(await ended).toMatchObject(ENDED_WELL);

    instance = await start(project, TOO_SLOW);
    const resumed = await client().loadChat({ sessionId: 'mine' });
    expect(asked(resumed.messages)).toHaveLength(3);
    expect(resumed.state).toMatchObject({ orderId: '1042', turns: 3 });
  });

  it('stops a turn that needs too long and says so, hands a background run over, and loses neither', async () => {
    const task = await client().chat({ sessionId: 'background' }).detach('Where is order 1035?');
    const turn = client().chat({ sessionId: 'mine' }).sendStream('Thanks');
    await turn.stream[Symbol.asyncIterator]().next();
    const ended = instance.end();
    const { finishReason, snapshotId } = await turn.response;
    expect(finishReason).toBe('aborted');
    expect(await ended).toMatchObject(ENDED_WELL);

    instance = await start(project, FAST);
    await recover(instance);
    const settled = async () => {
      const found = await client().getSnapshot({ snapshotId: task.snapshotId });
      return found?.status === 'completed' ? found : undefined;
    };
    const run = await vi.waitUntil(settled, { interval: 50 });
    expect(run.state?.messages?.at(-1)?.content[0]?.text).toContain('delayed');
    expect(run.state?.custom).toMatchObject({ orderId: '1035', turns: 1 });

    expect(await client().getSnapshot({ snapshotId: snapshotId! })).toMatchObject({ status: 'aborted' });
    // What was asked, and said until then, is kept: the conversation goes on from it.
    const resumed = await client().loadChat({ sessionId: 'mine' });
    expect(asked(resumed.messages)?.slice(2)).toEqual(['Can I get a refund for it?', 'Thanks']);
    expect((await resumed.send('Where is order 1042?')).text).toContain('shipped');
  });

  it('still knows after the restarts what a user asked it to remember, and forgets it on request', async () => {
    expect(await recall(client())).toContain('express delivery');
    expect((await client().chat().send('Forget me')).text).toContain('I have forgotten all');
    expect(await recall(client())).toBe('I remember nothing of you.');
  });

  it('ends at once on SIGTERM when nothing runs', async () => {
    expect(await instance.end()).toMatchObject(ENDED_WELL);
  });
});

describe.each([cloudRun, firebase])('$name, packed and copied out of the checkout', (deployment) => {
  let packed: string;
  beforeAll(() => {
    packed = packAndCopy(deployment.folder);
  });
  afterAll(() => rmSync(packed, { recursive: true, force: true }));

  it('serves the page, its lists to who is known, and the agent', async () => {
    const project = newProject();
    const packedInstance = await deployment.start(project, FAST, packed);
    const { url } = packedInstance;
    const base = url + deployment.page;
    const page = await (await fetch(base)).text();
    const script = /src="\.\/(assets\/[^"]+\.js)"/.exec(page)?.[1];
    expect((await fetch(base + script)).headers.get('content-type')).toContain('javascript');
    expect(await (await fetch(`${base}api/sign-in`)).json()).not.toMatchObject({ kind: 'none' });
    expect((await fetch(`${base}api/sessions`)).status).toBe(401);

    const headers = { authorization: `Bearer ${deployment.credentials(project, 'ada')}` };
    const support = remoteAgent({ url: `${url}${deployment.path}`, headers });
    expect((await support.chat({ sessionId: 'mine' }).send('Where is order 1042?')).text).toContain('shipped');
    expect(await (await fetch(`${base}api/sessions`, { headers })).json()).toMatchObject({
      items: [{ sessionId: 'mine', title: 'Where is order 1042?' }],
    });
    const bob = { authorization: `Bearer ${deployment.credentials(project, 'bob')}` };
    expect(await (await fetch(`${base}api/sessions`, { headers: bob })).json()).toMatchObject({ items: [] });
    expect((await support.chat().send('Remember that I prefer express delivery.')).text).toContain(
      'will be remembered',
    );
    expect(await packedInstance.end()).toMatchObject(ENDED_WELL);
  });
});

describe('samples/firebase', () => {
  it('learns, when the scheduled function runs, what an instance that ended had not learned yet', async () => {
    const project = newProject();
    const instance = await firebase.start(project);
    const headers = { authorization: `Bearer ${firebase.credentials(project, 'ada')}` };
    await remoteAgent({ url: `${instance.url}${firebase.path}`, headers })
      .chat()
      .send('Hello');

    const ai = genkit();
    const store = new FirestoreMemoryStore({ db: openDatabase(project), pathPrefix: byUser });
    const ended = memoryManager(ai, { store, worker: false });
    const context = contextOf('ada');
    const scope = ended.scopeFor('user', { context });
    const { status } = await ended.create({ scope, memory: 'The customer likes express delivery.', wait: false });
    expect(status).toBe('queued');
    await firebase.recover(instance);
    expect((await ended.list({ scope })).items).toMatchObject([{ text: 'The customer likes express delivery.' }]);
    await ended.close();
  });

  it('refuses ID tokens that are forged, over, or of another project', async () => {
    const project = newProject();
    const { url } = await firebase.start(project);
    for (const wrong of [{ isForged: true }, { expiresIn: -60 }, { project: 'another-project' }]) {
      const headers = { authorization: `Bearer ${idToken({ project, uid: 'ada', ...wrong })}` };
      const error = await thrownBy(
        remoteAgent({ url: `${url}${firebase.path}`, headers })
          .chat()
          .send('Hello'),
      );
      expect(AgentError.isInstance(error) && error.status).toBe('PERMISSION_DENIED');
    }
  });
});

describe('samples/cloud-run', () => {
  it('does not start without keys, and says why in one sentence', async () => {
    await expect(cloudRun.start(newProject(), { API_KEYS: 'ada=short' })).rejects.toThrow(
      'ended: API_KEYS must be <user>=<key>',
    );
  });

  it.each<[env: Record<string, string>, sentence: string]>([
    [{ PORT: 'http' }, "ended: PORT must be a whole number from 0 to 65535, not 'http'.\n"],
    [{ HOST: '192.0.2.1' }, "ended: HOST '192.0.2.1' is not an address of this machine.\n"],
  ])('says in one sentence that it can not listen: %o', async (env, sentence) => {
    const error = await thrownBy(cloudRun.start(newProject(), env));
    expect((error as Error).message.endsWith(sentence)).toBe(true);
  });
});
