import type { Firestore } from '@google-cloud/firestore';
import type { ScopeId } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { beforeEach, describe, expect, it } from 'vitest';
import { completedSnapshot, Workload } from '../../../../bench/workload.ts';
import { allDocuments } from '../support/at-rest.ts';
import { openDatabase } from '../support/database.ts';
import { beforeCommit } from '../support/transport.ts';

const CANARY = 'canary-7f3a';
const ADA: ScopeId = { scope: 'user', appName: CANARY, userId: 'ada' };
const SHOP: ScopeId = { scope: 'app', appName: CANARY };

/** The documents, and where they have the canary, packed or not. */
async function trace(db: Firestore): Promise<string[]> {
  return (await allDocuments(db)).map((document) => document.ref.path);
}

async function play(store: FirestoreSessionStore, turns: number, context?: Record<string, unknown>): Promise<void> {
  const workload = new Workload({ sessionId: CANARY });
  for (let i = 0; i < turns; i++) {
    const next = completedSnapshot(workload.next(), i > 0 ? `${CANARY}-${i - 1}` : undefined);
    await store.saveSnapshot(`${CANARY}-${i}`, () => next, context && { context });
  }
}

/** Deletes the session, and is stopped after its pointer is marked. */
async function interruptDeletion(store: FirestoreSessionStore): Promise<void> {
  let isBroken = true;
  let commits = 0;
  beforeCommit(() => {
    if (isBroken && ++commits === 2) throw Object.assign(new Error('interrupted'), { code: 13 });
  });
  await expect(store.deleteSession({ sessionId: CANARY })).rejects.toThrow();
  isBroken = false;
}

describe('retention', () => {
  let db: Firestore;
  beforeEach(() => void (db = openDatabase()));

  it('deleteSession leaves nothing in any collection', async () => {
    const store = new FirestoreSessionStore({ db, checkpointInterval: 3 });
    await play(store, 12);
    await store.saveSnapshot(`${CANARY}-11`, (current) => ({ ...current!, state: { custom: { rewritten: CANARY } } }));
    expect(await store.deleteSession({ sessionId: CANARY })).toMatchObject({ snapshots: 12 });
    expect(await trace(db)).toEqual([]);
  });

  it('erase removes all data of one tenant, with records, and none of another', async () => {
    const store = new FirestoreSessionStore({
      db,
      snapshotPathPrefix: (options) => String(options?.context?.['tenant']),
    });
    for (const tenant of [CANARY, 'other']) {
      await play(store, 4, { tenant });
      const alone = { createdAt: '2026-01-01T00:00:00.000Z', parentId: 'elsewhere', state: { custom: CANARY } };
      await store.saveSnapshot('alone', () => alone, {
        context: { tenant },
        scopes: [ADA, SHOP].map((id) => ({ id, change: () => ({ note: `${CANARY} of ${tenant}` }) })),
      });
    }
    expect((await trace(db)).filter((path) => path.includes(`-scopes/${CANARY}/`))).toHaveLength(2);
    const erased = await store.erase({ context: { tenant: CANARY } });
    expect(erased).toMatchObject({ sessions: 1, snapshots: 5, scopes: 2 });
    const paths = await trace(db);
    expect(paths.filter((path) => path.includes(CANARY) && !path.includes('/other/'))).toEqual([]);
    const [note] = await store.readScopes({ scopes: [ADA], context: { tenant: 'other' } });
    expect(note).toEqual({ note: `${CANARY} of other` });
    expect(await store.readScopes({ scopes: [ADA, SHOP], context: { tenant: CANARY } })).toEqual([{}, {}]);
    expect(paths.length).toBeGreaterThan(5);
    const kept = await store.getSnapshot({ sessionId: CANARY, context: { tenant: 'other' } });
    expect(kept?.snapshotId).toBe(`${CANARY}-3`);
  });

  it('deleteScope removes a record completely, and deleting its sessions keeps it', async () => {
    const store = new FirestoreSessionStore({ db, expireAfterMs: 1000 });
    await store.saveSnapshot('turn', () => ({ sessionId: CANARY, createdAt: '2026-01-01T00:00:00.000Z' }), {
      scopes: [{ id: ADA, change: () => ({ note: CANARY }) }],
    });
    await store.deleteSession({ sessionId: CANARY });
    const [record, ...others] = await allDocuments(db);
    expect(others).toEqual([]);
    expect(record?.get('expireAt')).toBeUndefined();
    expect(await store.deleteScope({ scope: ADA })).toBe(true);
    expect(await trace(db)).toEqual([]);
  });

  it('an interrupted deletion has removed the session, and is finished by prune', async () => {
    const store = new FirestoreSessionStore({ db });
    await play(store, 5);
    await interruptDeletion(store);
    const other = new FirestoreSessionStore({ db });
    expect(await other.getSnapshot({ sessionId: CANARY })).toBeUndefined();
    expect((await other.listSessions()).items).toEqual([]);
    await other.saveSnapshot('anew', () => ({ sessionId: CANARY, createdAt: '2026-01-01T00:00:00.000Z' }));
    expect(await other.listSnapshots({ sessionId: CANARY })).toMatchObject({ items: [{ snapshotId: 'anew' }] });
    expect((await trace(db)).length).toBeGreaterThan(2);
    expect(await other.prune({ idleMs: 1e12 })).toMatchObject({ sessions: 0, snapshots: 5 });
    expect(await trace(db)).toHaveLength(2);
  });

  it('a save over the rest of an interrupted deletion is a first save', async () => {
    const store = new FirestoreSessionStore({ db });
    await play(store, 5);
    const other = new FirestoreSessionStore({ db });
    await other.getSnapshot({ snapshotId: `${CANARY}-4` });
    await interruptDeletion(store);
    expect((await trace(db)).length).toBeGreaterThan(1);
    await other.saveSnapshot(`${CANARY}-4`, (current) => {
      if (current) return { ...current, heartbeatAt: '2026-01-01T00:00:00.000Z', state: { custom: 'rewritten' } };
      return { sessionId: CANARY, createdAt: '2026-01-01T00:00:00.000Z', state: { custom: 'anew' } };
    });
    const anew = await other.getSnapshot({ sessionId: CANARY });
    expect([anew?.snapshotId, anew?.parentId, anew?.state?.custom]).toEqual([`${CANARY}-4`, undefined, 'anew']);
    await other.prune({ idleMs: 1e12 });
    expect(await trace(db)).toHaveLength(2);
  });
});
