import { AsyncLocalStorage } from 'node:async_hooks';
import { queryObjects } from 'node:v8';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { beforeEach, expect, it } from 'vitest';
import { collectSpans, type Span } from '../../../support/spans.ts';
import { openDatabase } from '../support/database.ts';

const spans = await collectSpans();
beforeEach(() => spans.splice(0));

it('every call is a span with the billed usage, and without states', async () => {
  const db = openDatabase();
  const store = new FirestoreSessionStore({ db });
  const turn = { sessionId: 'chat', createdAt: '2026-01-01T00:00:00.000Z', state: { custom: 'the-state' } };
  await store.getSnapshot({ sessionId: 'chat' });
  await store.saveSnapshot('one', () => turn);
  await store.getSnapshot({ sessionId: 'chat' });
  await store.listSessions();
  const scope = { scope: 'app', appName: 'shop' } as const;
  await store.saveSnapshot('two', () => turn, { scopes: [{ id: scope, change: () => ({ note: 'the-state' }) }] });
  await store.readScopes({ scopes: [scope] });
  await store.deleteScope({ scope });
  await store.deleteSession({ sessionId: 'chat' });

  const named = (name: string): Span[] => spans.filter((span) => span.name === `FirestoreSessionStore.${name}`);
  const [save] = named('saveSnapshot');
  expect(save?.attributes).toMatchObject({
    'firestore.billed_reads': 0,
    'firestore.billed_writes': 2,
    'firestore.rpcs': 1,
  });
  expect(named('getSnapshot').at(-1)?.attributes).toMatchObject({ 'firestore.billed_reads': 2, 'firestore.rpcs': 1 });
  const scoped = named('saveSnapshot').at(-1);
  expect(scoped?.attributes).toMatchObject({ 'firestore.billed_reads': 1, 'firestore.billed_writes': 3 });
  expect(named('readScopes')[0]?.attributes).toMatchObject({ 'firestore.billed_reads': 1, 'firestore.rpcs': 1 });
  expect(named('deleteScope')[0]?.attributes).toMatchObject({ 'firestore.billed_deletes': 1 });
  expect(named('deleteSession')[0]?.attributes).toMatchObject({ 'firestore.billed_deletes': 3 });
  const sum = (key: string): number => spans.reduce((total, span) => total + Number(span.attributes[key] ?? 0), 0);
  const { reads, writes, deletes, rpcs, bytesRead, bytesWritten } = store.stats();
  expect([reads, writes, deletes, rpcs]).toEqual(
    ['billed_reads', 'billed_writes', 'billed_deletes', 'rpcs'].map((name) => sum(`firestore.${name}`)),
  );
  expect([bytesRead, bytesWritten]).toEqual([sum('firestore.bytes_read'), sum('firestore.bytes_written')]);
  expect(JSON.stringify(spans.map((span) => span.attributes))).not.toContain('the-state');
});

it('a call within the call of another store counts for its own store', async () => {
  const db = openDatabase();
  const [outer, inner] = ['outer', 'inner'].map((collection) => new FirestoreSessionStore({ db, collection }));
  const createdAt = '2026-01-01T00:00:00.000Z';
  let within: Promise<unknown> | undefined;
  await outer!.saveSnapshot('one', () => {
    within ??= inner!.getSnapshot({ snapshotId: 'none' });
    return { sessionId: 'chat', createdAt, state: {} };
  });
  await within;
  const billed = (name: string) => {
    const { attributes } = spans.findLast((span) => span.name === `FirestoreSessionStore.${name}`)!;
    return { reads: attributes['firestore.billed_reads'], writes: attributes['firestore.billed_writes'] };
  };
  expect(billed('saveSnapshot')).toEqual({ reads: 2, writes: 2 });
  expect(billed('getSnapshot')).toEqual({ reads: 2, writes: 0 });
  expect(outer!.stats()).toMatchObject({ reads: 2, writes: 2 });
  expect(inner!.stats()).toMatchObject({ reads: 2, writes: 0 });
});

it('another store does not slow down the promises of the process: Node calls each AsyncLocalStorage for every one', async () => {
  const db = openDatabase();
  const useStore = () => new FirestoreSessionStore({ db }).getSnapshot({ snapshotId: 'none' });
  await useStore();
  const before = queryObjects(AsyncLocalStorage);
  for (let made = 0; made < 20; made++) await useStore();
  expect(queryObjects(AsyncLocalStorage)).toBe(before);
});
