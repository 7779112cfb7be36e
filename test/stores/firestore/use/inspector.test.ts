/** The inspector on Firestore: tenants of one collection, and live turns. */
import type { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { counting } from '../../../inspector/support/counting.ts';
import { Listener } from '../../../inspector/support/listener.ts';
import { open, type Visitor } from '../../../inspector/support/open.ts';
import { message, saveTurns, turn } from '../../../inspector/support/sessions.ts';
import { openDatabase } from '../support/database.ts';

describe('the inspector on Firestore', () => {
  let db: Firestore;
  let store: FirestoreSessionStore;
  let calls: string[];
  let visitor: Visitor;
  let close: () => Promise<void>;

  beforeAll(async () => {
    db = openDatabase();
    const snapshotPathPrefix = (options?: { context?: Record<string, unknown> }) =>
      String(options?.context?.['tenant']);
    ({ store, calls } = counting(new FirestoreSessionStore({ db, snapshotPathPrefix })));
    ({ visitor, close } = await open({
      store,
      context: (tenant) => ({ tenant: tenant ?? 'one' }),
      pollIntervalMs: 50,
    }));
  });

  afterAll(async () => {
    await close();
  });

  it('shows each tenant its own sessions', async () => {
    for (const tenant of ['one', 'two']) {
      await store.saveSnapshot('a', () => turn(`of ${tenant}`, {}), { context: { tenant } });
    }
    expect((await visitor.get('start', {})).items).toMatchObject([{ sessionId: 'of one' }]);
    expect((await visitor.get('start', { tenant: 'two' })).items).toMatchObject([{ sessionId: 'of two' }]);
    await expect(visitor.get('tree', { tenant: 'two', sessionId: 'of one' })).resolves.toEqual({ nodes: [] });
    await visitor.post('delete-session', { tenant: 'two', sessionId: 'of two', confirm: 'of two' });
    expect((await visitor.get('sessions', { tenant: 'two' })).items).toEqual([]);
    expect((await visitor.get('sessions', {})).items).toHaveLength(1);
  });

  it('shows a session in 3 requests, and a new turn with the one that found it', async () => {
    const context = { tenant: 'live' };
    const ids = await saveTurns(store, 's', 30, { context });
    calls.length = 0;
    const { nodes } = await visitor.get('tree', { tenant: 'live', sessionId: 's' });
    expect(nodes.map(({ snapshotId }) => snapshotId)).toEqual(ids);
    const { node, messages } = await visitor.get('snapshot', { tenant: 'live', sessionId: 's' });
    await visitor.get('seen', { tenant: 'live', snapshotId: node.snapshotId });
    expect(calls).toEqual(['listSnapshots', 'getSnapshot', 'getSnapshot']);
    const listener = new Listener(visitor, { tenant: 'live', sessionId: 's', leafId: node.snapshotId, follow: true });
    await expect.poll(() => calls.length, { timeout: 60_000 }).toBeGreaterThan(4);
    const state = { messages: [...messages, message('30?')] };
    await store.saveSnapshot('next', () => turn('s', { parentId: node.snapshotId, state }), { context });
    const view = await listener.next('snapshot');
    listener.stop();
    expect(view).toMatchObject({ node: { snapshotId: 'next' }, messagesFrom: 60, messages: [message('30?')] });
    expect(new Set(calls)).toEqual(new Set(['listSnapshots', 'getSnapshot', 'saveSnapshot']));
  });
});
