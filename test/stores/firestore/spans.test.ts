import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { expect, it } from 'vitest';
import { collectSpans, type Span } from '../../support/spans.ts';
import { openDatabase } from './support/database.ts';

it('every call is a span that says what was billed, and holds no state', async () => {
  const spans = await collectSpans();
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
  await db.terminate();
});
