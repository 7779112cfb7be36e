import { enableTelemetry } from 'genkit/tracing';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { expect, it } from 'vitest';
import { openDatabase } from './support/database.ts';

interface Span {
  name: string;
  attributes: Record<string, unknown>;
}

it('every call is a span that says what was billed, and holds no state', async () => {
  const spans: Span[] = [];
  const collector = {
    onStart: () => {},
    onEnd: (span: unknown) => void spans.push(span as Span),
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  await enableTelemetry({ spanProcessors: [collector] });
  const db = openDatabase();
  const store = new FirestoreSessionStore({ db });
  const turn = { sessionId: 'chat', createdAt: '2026-01-01T00:00:00.000Z', state: { custom: 'the-state' } };
  await store.getSnapshot({ sessionId: 'chat' });
  await store.saveSnapshot('one', () => turn);
  await store.getSnapshot({ sessionId: 'chat' });
  await store.listSessions();
  await store.deleteSession({ sessionId: 'chat' });

  const named = (name: string): Span[] => spans.filter((span) => span.name === `FirestoreSessionStore.${name}`);
  const [save] = named('saveSnapshot');
  expect(save?.attributes).toMatchObject({
    'firestore.billed_reads': 0,
    'firestore.billed_writes': 2,
    'firestore.rpcs': 1,
  });
  expect(named('getSnapshot').at(-1)?.attributes).toMatchObject({ 'firestore.billed_reads': 2, 'firestore.rpcs': 1 });
  expect(named('deleteSession')[0]?.attributes).toMatchObject({ 'firestore.billed_deletes': 2 });
  const sum = (key: string): number => spans.reduce((total, span) => total + Number(span.attributes[key] ?? 0), 0);
  const { reads, writes, deletes, rpcs, bytesRead, bytesWritten } = store.stats();
  expect([reads, writes, deletes, rpcs]).toEqual(
    ['billed_reads', 'billed_writes', 'billed_deletes', 'rpcs'].map((name) => sum(`firestore.${name}`)),
  );
  expect([bytesRead, bytesWritten]).toEqual([sum('firestore.bytes_read'), sum('firestore.bytes_written')]);
  expect(JSON.stringify(spans.map((span) => span.attributes))).not.toContain('the-state');
  await db.terminate();
});
