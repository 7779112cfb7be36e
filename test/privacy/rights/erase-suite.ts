import { createHash } from 'node:crypto';
import { z } from 'genkit';
import {
  defineCustomAgent,
  genkit,
  type AgentInit,
  type RecordStore,
  type ScopeStore,
  type SnapshotStore,
} from 'genkitx-agents';
import { eraseUser, exportUser, type EraseReceipt, type ExportedLine } from 'genkitx-agents/privacy';
import { expect, it, onTestFinished } from 'vitest';
import { call } from '../../agent/support/helpers.ts';
import { storeAround } from '../../session/store-around.ts';
import { scale } from '../../support/scale.ts';
import { collect } from '../../support/collect.ts';

export type FullStore = SnapshotStore & ScopeStore & RecordStore;

/** The medium of a store. */
export interface Medium {
  /** The store of another process, which shares no memory with the others. */
  open(): FullStore;
  /** All data on the medium: names and bytes. */
  look(): Promise<Map<string, string>>;
  /** Runs `work` with the store of a process that dies after this number of changes of the medium. Returns whether it died. */
  dying(changes: number, work: (store: FullStore) => Promise<unknown>): Promise<boolean>;
}

/** Part of all planted data of the user, including the id. */
const CANARY = 'canary-7d1f';
const ADA = `ada-${CANARY}`;
const EVE = 'eve';

/** The agent of a separate process, whose turns run the commands in their inputs, then wait until they may end. */
export function agentOn(store: SnapshotStore, mayEnd: () => Promise<void> = async () => {}) {
  const config = {
    name: 'support',
    store,
    scopes: { user: z.record(z.string(), z.string()) },
    shareSessions: true,
    // No heartbeats, so that the tests see no changes by runs that never end.
    background: { heartbeatIntervalMs: 600_000, leaseMs: 1_200_000 },
  };
  const agent = defineCustomAgent(genkit({}), config, async (sess) => {
    await sess.run(async (input) => {
      const text = input.message?.content[0]?.text ?? '';
      const toolRequest = { name: 'search', ref: '1', input: { query: text } };
      const toolResponse = { name: 'search', ref: '1', output: JSON.stringify({ found: text }) };
      sess.addMessages([
        { role: 'model', content: [{ toolRequest }] },
        { role: 'tool', content: [{ toolResponse }] },
        { role: 'model', content: [{ text }] },
      ]);
      sess.updateCustom(() => ({ [text]: text, long: `${text} `.repeat(300) }));
      sess.session.addArtifacts([{ name: text, parts: [{ text }] }]);
      sess.session.state.set('user:said', text);
      await mayEnd();
      if (text.endsWith('fail')) throw new Error(text);
    });
    return {};
  });
  return { agent, turn: (userId: string, text: string, init: AgentInit = {}) => call(agent, [text], init, as(userId)) };
}

export const as = (uid: string) => ({ context: { auth: { uid } } });

/** Saves data of a user in every place of a store. Returns the number of sessions that they own. */
async function plant(medium: Medium, userId: string, text: string): Promise<number> {
  const store = medium.open();
  const { agent, turn } = agentOn(store);
  for (let session = 0; session < 3; session++) {
    const sessionId = `${userId} ${session}`;
    for (let n = 0; n < 4; n++) await turn(userId, `${text} ${n}`, { sessionId });
    await turn(userId, `${text} fail`, { sessionId });
    await store.writeRecord({ sessionId, kind: text, key: text, value: { text } });
  }
  const title = { sessionId: `${userId} title`, createdAt: new Date().toISOString(), finishReason: 'other' as const };
  await store.saveSnapshot(
    `${userId} titled`,
    () => ({ ...title, status: 'failed', error: { message: text } }) as never,
    {
      session: { ownerId: userId, title: text },
    },
  );
  const forever = agentOn(store, () => new Promise((resolve) => onTestFinished(() => resolve())));
  await forever.agent.chat({ sessionId: `${userId} running` }, as(userId)).detach(text);
  const { snapshotId } = await agent.chat({ sessionId: `${userId} detached` }, as(userId)).detach(text);
  await agent.waitForSnapshot(snapshotId, as(userId));
  return 6;
}

function differences(before: Map<string, string>, after: Map<string, string>): string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.get(name) !== after.get(name)).toSorted();
}

/** The expected medium after an erasure of the user: the earlier data, and one entry that records the erasure. */
async function expectErased(medium: Medium, before: Map<string, string>): Promise<void> {
  const after = await medium.look();
  const found = [...after].filter(([name, bytes]) => name.includes(CANARY) || bytes.includes(CANARY));
  expect(
    found.map(([name]) => name),
    'entries with the canary',
  ).toEqual([]);
  // A file store creates and removes locks.
  const changed = differences(before, after).filter((name) => !name.startsWith('.locks'));
  expect(changed.length, changed.join('\n')).toBeLessThanOrEqual(1);
  const store = medium.open();
  expect((await store.listSessions({ ownerId: ADA })).items).toEqual([]);
  const scopes = (await store.listScopes()).items;
  expect(scopes.filter(({ scope, appName }) => scope === 'user' && appName === 'support')).toEqual([
    { scope: 'user', appName: 'support', userId: EVE },
  ]);
}

/** The tests of `eraseUser` for any store that keeps all kinds of data. */
export function erasesUsers(open: () => Promise<Medium>): void {
  it('removes all of a user’s data from the medium and no other data, and returns the counts', async () => {
    const medium = await open();
    await plant(medium, EVE, 'other');
    const before = await medium.look();
    const sessions = await plant(medium, ADA, CANARY);
    expect([...(await medium.look()).keys()].length).toBeGreaterThan(before.size + sessions);
    const progress: number[] = [];
    const receipt = await eraseUser(medium.open(), { userId: ADA, onProgress: (so) => progress.push(so.sessions) });
    await expectErased(medium, before);
    expect(receipt).toMatchObject({ sessions, snapshots: 18, records: 3, scopes: 1 });
    const userHash = createHash('sha256').update('user:').update(Buffer.from(ADA, 'utf16le')).digest('hex');
    expect(receipt.userHash).toBe(userHash);
    expect(Date.parse(receipt.erasedAt)).toBeLessThanOrEqual(Date.now());
    expect(progress.at(-1)).toBe(sessions);
    const again = await eraseUser(medium.open(), { userId: ADA });
    expect(again).toMatchObject({ sessions: 0, snapshots: 0, shards: 0, records: 0, scopes: 0 });
    await expectErased(medium, before);
  });

  it('beside 20 running turns of the user in two processes: none restores anything, and the user may begin again', async () => {
    const medium = await open();
    await plant(medium, EVE, 'other');
    const before = await medium.look();
    const planted = agentOn(medium.open());
    for (let n = 0; n < 10; n++) await planted.turn(ADA, CANARY, { sessionId: `old ${n}` });
    let running = 0;
    let end: () => void = () => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    let all: () => void = () => {};
    const allRun = new Promise<void>((resolve) => (all = resolve));
    const processes = [0, 1].map(() =>
      agentOn(medium.open(), () => {
        if (++running === 21) all();
        return ended;
      }),
    );
    const old = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => (await medium.open().getSnapshot({ sessionId: `old ${n}` }))!),
    );
    // Of each kind: new sessions without and with an id, old ones by session and by snapshot.
    const inits: AgentInit[] = old.flatMap(({ snapshotId }, n): AgentInit[] => [
      n % 2 === 0 ? {} : { sessionId: `new ${n}` },
      n % 2 === 0 ? { sessionId: `old ${n}` } : { snapshotId },
    ]);
    const turns = inits.map((init, i) => processes[i % 2]!.turn(ADA, CANARY, init));
    // In a session of another user, a turn changes a record of the user.
    const foreign = processes[0]!.turn(ADA, CANARY, { sessionId: `${EVE} 1` });
    await allRun;
    await eraseUser(medium.open(), { userId: ADA });
    await expectErased(medium, before);
    end();
    for (const { output } of await Promise.all([...turns, foreign])) expect(output.finishReason).toBe('failed');
    await expectErased(medium, before);
    const anew = await processes[1]!.turn(ADA, 'anew', { sessionId: 'new 1' });
    expect(anew.output.finishReason).not.toBe('failed');
    expect((await medium.open().listSessions({ ownerId: ADA })).items).toHaveLength(1);
  });

  it('erasure: killed after any number of changes and called again, it leaves nothing', async () => {
    const medium = await open();
    await plant(medium, EVE, 'other');
    await eraseUser(medium.open(), { userId: ADA });
    for (let changes = 0, died = true; died; changes += changes < 30 ? scale(5, 1) : 7) {
      const planted = agentOn(medium.open());
      const before = await medium.look();
      for (const sessionId of ['one', 'two']) {
        for (let n = 0; n < 2; n++) await planted.turn(ADA, CANARY, { sessionId });
        await medium.open().writeRecord({ sessionId, kind: CANARY, key: CANARY, value: CANARY });
      }
      died = await medium.dying(changes, (store) => eraseUser(store, { userId: ADA }));
      await eraseUser(medium.open(), { userId: ADA });
      await expectErased(medium, before);
    }
  });

  it('ends when its signal aborts, and continues when it is called again', async () => {
    const medium = await open();
    await plant(medium, EVE, 'other');
    const before = await medium.look();
    await plant(medium, ADA, CANARY);
    const controller = new AbortController();
    const stopped = eraseUser(medium.open(), {
      userId: ADA,
      signal: controller.signal,
      onProgress: () => controller.abort(new Error('later')),
    });
    await expect(stopped).rejects.toThrow('later');
    await eraseUser(medium.open(), { userId: ADA });
    await expectErased(medium, before);
  });

  it('exports all data that is erased, and no other', async () => {
    const medium = await open();
    await plant(medium, EVE, 'other');
    const sessions = await plant(medium, ADA, CANARY);
    const exported = await collect(exportUser(medium.open(), { userId: ADA }));
    const lines = exported.map((line) => JSON.parse(line) as ExportedLine);
    expect(lines.at(-1)).toEqual({ kind: 'end', sessions, snapshots: 18, records: 3, scopes: 1 });
    expect(lines.filter((line) => !JSON.stringify(line).includes(CANARY))).toEqual([lines.at(-1)]);
    expect(JSON.stringify(lines)).not.toContain(EVE);
    const receipt: EraseReceipt = await eraseUser(medium.open(), { userId: ADA });
    expect(receipt).toMatchObject({ sessions, snapshots: 18, records: 3, scopes: 1 });
    expect(await collect(exportUser(medium.open(), { userId: ADA }))).toEqual([
      '{"kind":"end","sessions":0,"snapshots":0,"records":0,"scopes":0}\n',
    ]);
  });

  it('exports a session that is written while others are read', async () => {
    const medium = await open();
    const { turn } = agentOn(medium.open());
    for (const sessionId of ['one', 'two', 'three']) await turn(ADA, CANARY, { sessionId });
    const store = medium.open();
    // Pages of one session: the list continues after the first, and the last one moves before it.
    const paged = storeAround(store, async (name, args, make) => {
      if (name !== 'listSessions') return make();
      const page = await store.listSessions({ ...(args[0] as object), limit: 1 });
      if (page.items[0]?.sessionId === 'three') await turn(ADA, CANARY, { sessionId: 'one' });
      return page;
    });
    const exported = new Set<string>();
    for await (const text of exportUser(paged, { userId: ADA })) {
      const line = JSON.parse(text) as ExportedLine;
      if (line.kind === 'session') exported.add(line.session.sessionId);
    }
    expect([...exported].toSorted()).toEqual(['one', 'three', 'two']);
  });
}

/** Further tests for a store whose data keys are kept elsewhere. `keys` has those of the medium that was opened last, by owner. */
export function erasesKeys(open: () => Promise<Medium>, keys: () => ReadonlyMap<string, unknown>): void {
  const keysOfUser = (): string[] => [...keys().keys()].filter((name) => name.includes(CANARY));

  it('removes the keys of all of a user’s data, and no others', async () => {
    const medium = await open();
    await plant(medium, EVE, 'other');
    const before = [...keys().keys()];
    const sessions = await plant(medium, ADA, CANARY);
    // A key for each session at least, and for the user's record.
    expect(keysOfUser().length).toBeGreaterThan(sessions);
    await eraseUser(medium.open(), { userId: ADA });
    expect(keysOfUser()).toEqual([]);
    const left = [...keys().keys()];
    expect(left).toEqual(expect.arrayContaining(before));
    // The key of the record of the erasure.
    expect(left.length - before.length).toBeLessThanOrEqual(1);
    expect((await medium.open().getSnapshot({ sessionId: `${EVE} 1` }))?.state?.custom).toMatchObject({
      'other fail': 'other fail',
    });
  });

  it('erasure: killed after any number of changes and called again, it leaves no key of the user', async () => {
    const medium = await open();
    let changes = 0;
    for (let died = true; died; changes += scale(5, 1)) {
      await agentOn(medium.open()).turn(ADA, CANARY, { sessionId: CANARY });
      await medium.open().writeRecord({ sessionId: CANARY, kind: CANARY, key: CANARY, value: CANARY });
      expect(keysOfUser()).not.toEqual([]);
      died = await medium.dying(changes, (store) => eraseUser(store, { userId: ADA }));
      await eraseUser(medium.open(), { userId: ADA });
      expect(keysOfUser(), `after ${changes} changes`).toEqual([]);
    }
    expect(changes).toBeGreaterThan(8);
  });
}
