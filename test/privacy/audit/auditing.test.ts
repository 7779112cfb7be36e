import { genkit } from 'genkit/beta';
import { defineAgent, FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { auditing, eraseUser, exportUser, piiRules, redacting, type AccessEvent } from 'genkitx-agents/privacy';
import { sessionStoreConformance } from 'genkitx-agents/testing';
import { describe, expect, it, vi } from 'vitest';
import { call, user } from '../../agent/support/helpers.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { SECRET } from '../redaction/support.ts';

const SECRET_TEXT = 'canary-7d1f';

function setUp(onAccess: (event: AccessEvent) => unknown = () => {}) {
  const events: AccessEvent[] = [];
  const store = auditing(new InMemorySessionStore(), {
    onAccess: (event) => {
      events.push(event);
      return onAccess(event);
    },
  });
  return {
    store,
    events,
    taken: () =>
      events
        .splice(0)
        .map(({ action, operation, outcome, ...ids }) => ({ said: `${action} ${operation} ${outcome}`, ...ids })),
  };
}

const completed = (sessionId: string, more: object = {}) => ({
  sessionId,
  createdAt: new Date().toISOString(),
  status: 'completed' as const,
  state: { messages: [user(SECRET_TEXT)], custom: { [SECRET_TEXT]: SECRET_TEXT } },
  ...more,
});

describe('onAccess', () => {
  it('gets each access with ids, tenant and outcome, and no content', async () => {
    const { store, events, taken } = setUp();
    const context = { auth: { uid: 'ada' } };
    const scope = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
    await store.saveSnapshot('a', () => completed('s'), {
      context,
      session: { ownerId: 'ada', title: SECRET_TEXT },
      scopes: [{ id: scope, change: () => ({ [SECRET_TEXT]: SECRET_TEXT }) }],
    });
    await store.saveSnapshot('a', () => null);
    await store.getSnapshot({ snapshotId: 'a', context });
    await store.getSnapshotMetadata({ sessionId: 'none' });
    store.onSnapshotStateChange('a', () => {}, { context })();
    await store.listSnapshots({ sessionId: 's' });
    await store.listSessions({ ownerId: 'ada' });
    await store.readScopes({ scopes: [scope] });
    await store.writeRecord({ sessionId: 's', kind: 'note', key: 'n', value: SECRET_TEXT });
    await store.readRecords({ sessionId: 's' });
    const saved = Date.now();
    await vi.waitUntil(() => Date.now() > saved + 1, { interval: 1 });
    await store.prune({ idleMs: 1 }, { dryRun: true });
    await store.deleteScope({ scope });
    await store.deleteSession({ sessionId: 's' });
    await store.deleteSession({ sessionId: 's' });
    await expect(store.saveSnapshot('a', () => completed('s'), { expectedLeafId: 'x' })).rejects.toThrow();
    await expect(
      store.saveSnapshot('a', () => {
        throw new Error(SECRET_TEXT);
      }),
    ).rejects.toThrow();
    expect(JSON.stringify(events)).not.toContain(SECRET_TEXT);
    expect(taken()).toEqual([
      { said: 'write saveSnapshot ok', snapshotId: 'a', sessionId: 's', context, scopes: [scope] },
      { said: 'write saveSnapshot none', snapshotId: 'a' },
      { said: 'read getSnapshot ok', snapshotId: 'a', sessionId: 's', context },
      { said: 'read getSnapshotMetadata none', sessionId: 'none' },
      { said: 'read onSnapshotStateChange ok', snapshotId: 'a', context },
      { said: 'list listSnapshots ok', sessionId: 's' },
      { said: 'list listSessions ok', userId: 'ada' },
      { said: 'read readScopes ok', scopes: [scope] },
      { said: 'write writeRecord ok', sessionId: 's' },
      { said: 'read readRecords ok', sessionId: 's' },
      { said: 'list prune ok' },
      { said: 'erase deleteScope ok', scopes: [scope] },
      { said: 'erase deleteSession ok', sessionId: 's' },
      { said: 'erase deleteSession none', sessionId: 's' },
      { said: 'write saveSnapshot failed', snapshotId: 'a', status: 'ABORTED' },
      { said: 'write saveSnapshot failed', snapshotId: 'a' },
    ]);
  });

  it('gets an export and an erasure as such, also if they end early', async () => {
    const { store, taken } = setUp();
    const of = (said: string) =>
      taken()
        .filter((event) => event.said.includes('User'))
        .map((event) => [event.said === said, event.userId]);
    await store.saveSnapshot('a', () => completed('s'), { session: { ownerId: 'ada' } });
    for await (const _ of exportUser(store, { userId: 'ada' }));
    expect(of('export exportUser ok')).toEqual([[true, 'ada']]);
    for await (const _ of exportUser(store, { userId: 'ada' })) break;
    expect(of('export exportUser failed')).toEqual([[true, 'ada']]);
    await expect(eraseUser(store, { userId: 'ada', signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no');
    expect(of('erase eraseUser failed')).toEqual([[true, 'ada']]);
    await eraseUser(store, { userId: 'ada' });
    expect(of('erase eraseUser ok')).toEqual([[true, 'ada']]);
  });

  it('gets the erasure of a tenant, and one that found records only', async () => {
    const context = { auth: { uid: 'ada' } };
    class Erasing extends InMemorySessionStore {
      erase = async (of: { context: object }) => ({ snapshots: 0, scopes: of.context === context ? 1 : 0 });
    }
    const events: AccessEvent[] = [];
    const store = auditing(new Erasing(), { onAccess: (event) => events.push(event) });
    await store.erase({ context });
    await store.saveSnapshot('a', () => completed('s'), {
      scopes: [{ id: { scope: 'user', appName: 'shop', userId: 'ada' }, change: () => ({ likes: 'tea' }) }],
    });
    await eraseUser(store, { userId: 'ada' });
    expect(events[0]).toEqual({ action: 'erase', operation: 'erase', context, outcome: 'ok' });
    expect(events.at(-1)).toMatchObject({ operation: 'eraseUser', outcome: 'ok' });
    await eraseUser(store, { userId: 'ada' });
    expect(events.at(-1)).toMatchObject({ operation: 'eraseUser', outcome: 'none' });
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no log');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no log'))],
    ['hangs', () => new Promise(() => {})],
  ])('that %s loses no turn', async (_, onAccess) => {
    const { store, events } = setUp(onAccess);
    const ai = genkit({});
    const { name } = scriptedModel(ai, { otherwise: 'hello' });
    const agent = defineAgent(ai, { name: 'a', model: name, store });
    const { output } = await call(agent, ['hi', 'again'], { sessionId: 's' });
    expect(output.finishReason).toBe('stop');
    expect((await agent.getSnapshot({ sessionId: 's' }))?.state?.messages).toHaveLength(4);
    expect(events.length).toBeGreaterThan(2);
  });

  it('around a redacting store: the running session still continues with placeholders', async () => {
    const inner = redacting(new FileSessionStore(temporaryFolder()), {
      rules: piiRules({ kinds: ['email'] }),
      secret: SECRET,
    });
    const store = auditing(inner, { onAccess: () => {} });
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'hello' });
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, store });
    await call(agent, ['I am anna@example.com', 'again'], { sessionId: 's' });
    expect(JSON.stringify(scripted.requests[1])).toContain('[EMAIL_1]');
    expect(JSON.stringify(scripted.requests[1])).not.toContain('anna@');
    await store.close();
  });
});

sessionStoreConformance({
  name: 'auditing(InMemorySessionStore)',
  runner: { describe, it },
  effort: 0.02,
  manifest: { capabilities: new InMemorySessionStore().capabilities, tenants: true, branching: true },
  open: async (options) => {
    const medium = new InMemorySessionStore(options);
    const wrap = (store = new InMemorySessionStore(options)) => auditing(store, { onAccess: () => {} });
    const store = wrap(medium);
    return { a: store, b: wrap(medium), reopen: async () => wrap(), close: () => store.close() };
  },
});
