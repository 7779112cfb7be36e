/** A session whose last snapshots are damaged: the error names the nearest one that can be read, and the conversation continues from there. */
import { readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { ActionContext } from 'genkit';
import {
  defineCustomAgent,
  FileSessionStore,
  genkit,
  InMemorySessionStore,
  type AgentAPI,
  type CustomAgentConfig,
  type SessionStore,
} from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dataLoss } from '../../../src/errors.ts';
import { serveByHandler } from '../../server/support/http.ts';
import { catchErrorLog } from '../../server/support/log.ts';
import { refusal } from '../../server/support/refusal.ts';
import { storeAround } from '../../session/store-around.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const errorLog = catchErrorLog();

/** An agent that echoes; `fail` fails the turn. */
function echoOn(store: SessionStore, options: Partial<CustomAgentConfig> = {}) {
  return defineCustomAgent(genkit({}), { name: 'echo', store, ...options }, async (session) => {
    await session.run(async ({ message }) => {
      const text = message?.content[0]?.text ?? '';
      if (text === 'fail') throw new Error('as told');
      session.addMessages([{ role: 'model', content: [{ text: `You said ${text}` }] }]);
    });
    return { message: session.getMessages().at(-1) };
  });
}

/** A folder with a session `s` of turns, and their snapshots in order. */
async function savedSession(texts: string[], context?: ActionContext) {
  const folder = temporaryFolder();
  const ids: string[] = [];
  const store = new FileSessionStore(folder, { checkpointInterval: 1 });
  const agent = echoOn(store);
  for (const text of texts) {
    const output = agent.run({ message: { role: 'user', content: [{ text }] } }, { init: { sessionId: 's' }, context });
    ids.push((await output).result.snapshotId ?? '');
  }
  await store.close();
  return { folder, ids };
}

/** Overwrites the files of snapshots. */
function damage(folder: string, ...ids: (string | undefined)[]): void {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  for (const id of ids) {
    const own = files.filter((file) => basename(file) === `${id}.json`);
    expect(own).not.toHaveLength(0);
    for (const file of own) writeFileSync(join(folder, file), 'garbage');
  }
}

/** The store of a process that starts anew. */
function reopened(folder: string): FileSessionStore {
  const store = new FileSessionStore(folder);
  onTestFinished(() => store.close());
  return store;
}

type Reach = (agent: ReturnType<typeof echoOn>, context?: ActionContext) => Promise<AgentAPI>;

const REACHES: [string, Reach][] = [
  ['in process', async (agent) => agent],
  [
    'over HTTP',
    async (agent, context = {}) => {
      const { url, stop } = await serveByHandler([agent], { context: async () => context });
      onTestFinished(stop);
      return remoteAgent({ url: `${url}/echo` });
    },
  ],
];

const bySession = { sessionId: 's' };

describe.each(REACHES)('a damaged session, %s', (_, reach) => {
  test.each([
    ['its leaf', 3, [2]],
    ['its leaf and the parent of that', 4, [2, 3]],
  ])('%s: load and send name the nearest healthy snapshot, which goes on', async (_name, turns, damaged) => {
    const texts = Array.from({ length: turns }, (_turn, i) => `turn ${i}`);
    const { folder, ids } = await savedSession(texts);
    damage(folder, ...damaged.map((i) => ids[i]));
    const api = await reach(echoOn(reopened(folder)));
    const healthy = ids[1]!;
    const calls = [
      () => api.loadChat(bySession),
      () => api.chat(bySession).send('more'),
      () => api.getSnapshot(bySession),
    ];
    for (const call of calls) {
      const error = await refusal(call());
      expect(error).toMatchObject({ status: 'DATA_LOSS', healthySnapshotId: healthy });
      expect(error.message).toContain('"s"');
      expect(error.message).toContain(healthy);
      expect(error.details).toEqual({ healthySnapshotId: healthy });
    }
    expect(errorLog()).toContain(ids.at(-1));

    const chat = await api.loadChat({ snapshotId: healthy });
    expect(chat.messages).toHaveLength(4);
    expect((await chat.send('on')).text).toBe('You said on');
    expect((await api.loadChat(bySession)).messages).toHaveLength(6);
  });

  test('its only snapshot: the error says to start a new session', async () => {
    const { folder, ids } = await savedSession(['turn 0']);
    damage(folder, ids[0]);
    const api = await reach(echoOn(reopened(folder)));
    for (const call of [() => api.loadChat(bySession), () => api.chat(bySession).send('more')]) {
      const error = await refusal(call());
      expect(error).toMatchObject({ status: 'DATA_LOSS', healthySnapshotId: undefined });
      expect(error.message).toMatch(/"s".*start a new session/i);
    }
  });

  test('the turn before one that failed', async () => {
    const { folder, ids } = await savedSession(['turn 0', 'turn 1', 'fail']);
    damage(folder, ids[1]);
    const api = await reach(echoOn(reopened(folder)));
    const error = await refusal(api.chat(bySession).send('more'));
    expect(error).toMatchObject({ status: 'DATA_LOSS', healthySnapshotId: ids[0] });
  });

  test('a damaged snapshot that is named by its id is reported as damaged', async () => {
    const { folder, ids } = await savedSession(['turn 0', 'turn 1']);
    damage(folder, ids[1]);
    const api = await reach(echoOn(reopened(folder)));
    for (const init of [{ snapshotId: ids[1]! }, { snapshotId: ids[1]!, sessionId: 's' }]) {
      const error = await refusal(api.chat(init).send('more'));
      expect(error.status).toBe('DATA_LOSS');
      expect(error.message).toContain(ids[1]);
      if ('sessionId' in init) expect(error.healthySnapshotId).toBe(ids[0]);
    }
  });

  test('continues with onConflict: ’reject’, and a second turn is rejected', async () => {
    const { folder, ids } = await savedSession(['turn 0', 'turn 1']);
    damage(folder, ids[1]);
    const api = await reach(echoOn(reopened(folder), { onConflict: 'reject' }));
    const chats = await Promise.all([1, 2].map(() => api.loadChat({ snapshotId: ids[0]! })));
    expect((await chats[0]!.send('on')).text).toBe('You said on');
    expect((await refusal(chats[1]!.send('too'))).status).toBe('ABORTED');
    expect((await api.loadChat(bySession)).messages).toHaveLength(4);
  });

  test('of another user does not exist', async () => {
    const ada = { auth: { uid: 'ada' } };
    const { folder, ids } = await savedSession(['turn 0', 'turn 1'], ada);
    damage(folder, ids[1]);
    const agent = echoOn(reopened(folder));
    const bob = { auth: { uid: 'bob' } };
    const api = await reach(agent, bob);
    const chat = _ === 'in process' ? agent.chat(bySession, { context: bob }) : api.chat(bySession);
    const error = await refusal(chat.send('show me'));
    const message = 'Agent \'echo\' has no session "s".';
    expect(error).toMatchObject({ status: 'NOT_FOUND', message, healthySnapshotId: undefined });
    expect(await agent.getSnapshotData({ ...bySession, context: bob })).toBeUndefined();
    const metadata = { ...bySession, metadataOnly: true };
    const reading = agent.getSnapshotDataAction.run(metadata, { context: bob });
    await expect(reading).rejects.toMatchObject({ status: 'NOT_FOUND' });
  });

  test('in a store without metadata passes the store’s own error', async () => {
    const inner = new InMemorySessionStore();
    const foreign: SessionStore = {
      getSnapshot: async () => {
        throw dataLoss('The row of s is damaged.');
      },
      saveSnapshot: (...args) => inner.saveSnapshot(...args),
    };
    const api = await reach(echoOn(foreign));
    for (const call of [() => api.loadChat(bySession), () => api.chat(bySession).send('more')]) {
      const error = await refusal(call());
      expect(error).toMatchObject({ status: 'DATA_LOSS', healthySnapshotId: undefined });
      expect(error.message).toBe(
        _ === 'in process' ? 'The row of s is damaged.' : 'Something that was stored can not be read.',
      );
    }
  });
});

test('a store that has the metadata of a damaged snapshot is not listed, and a healthy session is read once', async () => {
  const inner = new InMemorySessionStore();
  const asked: string[] = [];
  const damaged = new Set<string>();
  const store = storeAround(inner, async (name, args, make) => {
    asked.push(name);
    if (name !== 'getSnapshot') return make();
    const snapshot = await (make() as ReturnType<typeof inner.getSnapshot>);
    if (snapshot && damaged.has(snapshot.snapshotId)) throw dataLoss('A piece of its state is missing.');
    return snapshot;
  });
  const agent = echoOn(store);
  const ids: (string | undefined)[] = [];
  for (const text of ['a', 'b', 'c']) ids.push((await agent.chat(bySession).send(text)).snapshotId);
  asked.length = 0;
  await agent.loadChat(bySession);
  expect(asked).toEqual(['getSnapshot']);
  damaged.add(ids[2]!).add(ids[1]!);
  expect(await refusal(agent.loadChat(bySession))).toMatchObject({ healthySnapshotId: ids[0] });
  expect(asked).not.toContain('listSnapshots');
  const byId = await refusal(agent.loadChat({ snapshotId: ids[2]! }));
  expect(byId).toMatchObject({ status: 'DATA_LOSS', healthySnapshotId: ids[0] });
});

test('the search reads at most a hundred snapshots', async () => {
  const inner = new InMemorySessionStore();
  let parentId: string | undefined;
  for (let i = 0; i < 150; i++) {
    const createdAt = new Date(i).toISOString();
    const snapshot = { ...bySession, parentId, createdAt, status: 'completed' as const, state: {} };
    parentId = (await inner.saveSnapshot(`turn ${i}`, () => snapshot)) ?? undefined;
  }
  let reads = 0;
  const store = storeAround(inner, async (name, _args, make) => {
    if (name !== 'getSnapshot') return make();
    reads++;
    throw dataLoss('A piece of its state is missing.');
  });
  const error = await refusal(echoOn(store).loadChat(bySession));
  expect(error).toMatchObject({ status: 'DATA_LOSS', healthySnapshotId: undefined });
  expect(error.message).toContain('tart a new session');
  // The requested snapshot, and those of the search.
  expect(reads).toBe(1 + 100);
});
