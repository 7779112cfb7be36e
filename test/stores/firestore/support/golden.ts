/**
 * Golden documents: the documents of a released version of the Firestore store, and the data that it read from them. Later versions must read it. Run
 * `node --import tsx test/stores/firestore/support/golden.ts <new file>` with an emulator for a new version of the format, once for sessions,
 * once for `firestore-records-…` and once for `firestore-session-records-…`; never overwrite one.
 */
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { Timestamp, type Firestore } from '@google-cloud/firestore';
import type { SessionSnapshot, SessionSnapshotInput } from 'genkit/beta';
import type { ScopeId, ScopeRecord, SessionRecord, SessionSummary } from '../../../../src/store/contract.ts';
import { completedSnapshot, Workload } from '../../../../bench/workload.ts';
import { FirestoreSessionStore } from '../../../../stores/firestore/firestore-session-store.ts';
import { allDocuments } from './at-rest.ts';
import { openDatabase } from './database.ts';

export const TENANTS = ['ann', '../böb'];

const RECORDS: ScopeId[] = [
  { scope: 'app', appName: 'shop' },
  { scope: 'user', appName: 'shop/é', userId: '\uD800' },
];

/** A database as text, and its data. */
export interface Golden {
  documents: Record<string, unknown>;
  expected: { tenant: string; leaf: string; snapshots: SessionSnapshot[]; sessions: SessionSummary[] }[];
}

export function openGolden(db: Firestore): FirestoreSessionStore {
  const snapshotPathPrefix = (options?: { context?: Record<string, unknown> }): string =>
    String(options?.context?.['tenant']);
  return new FirestoreSessionStore({ db, checkpointInterval: 4, snapshotPathPrefix });
}

/** A branched session with checkpoints, diffs, rewrites, shards, pruned snapshots, details and usage, and a snapshot without a session. */
async function play(store: FirestoreSessionStore, context: Record<string, unknown>): Promise<void> {
  const workload = new Workload({ sessionId: 'chat \u0000 é' });
  const save = (id: string, next: SessionSnapshotInput): Promise<unknown> =>
    store.saveSnapshot(id, () => next, { context });
  const states = Array.from({ length: 12 }, () => workload.next());
  for (const [i, state] of states.entries()) {
    await save(`turn/${i}`, {
      ...completedSnapshot(state, i > 0 ? `turn/${i - 1}` : undefined),
      status: i === 5 || i === 11 ? 'pending' : 'completed',
    });
  }
  await save('branch', completedSnapshot(states[3]!, 'turn/7'));
  const rewrite = { ...completedSnapshot(states[1]!, undefined), status: 'aborted' as const };
  await save('turn/5', rewrite);
  const details = { ownerId: 'ann', agent: 'support', title: 'é' };
  await store.saveSnapshot('turn/11', (current) => ({ ...current!, status: 'completed', usage: { inputTokens: 7 } }), {
    context,
    session: details,
  });
  await store.saveSnapshot(
    'turn/9',
    (current) => ({ ...current!, updatedAt: '2030-01-01T00:00:00.000Z', extra: { kept: [[]] } }),
    { context },
  );
  await save('alone', { createdAt: '2026-01-01T00:00:00.000Z', state: { custom: { value: [-0, '\uD800', [[1]]] } } });
  await store.prune({ maxChainLength: 9 }, { context });
}

export async function readGolden(store: FirestoreSessionStore, tenant: string): Promise<Golden['expected'][number]> {
  const context = { tenant };
  const { items } = await store.listSnapshots({ sessionId: 'chat \u0000 é', context });
  const ids = [...items.map((item) => item.snapshotId), 'alone'];
  const snapshots = await Promise.all(ids.map((snapshotId) => store.getSnapshot({ snapshotId, context })));
  const leaf = await store.getSnapshotMetadata({ sessionId: 'chat \u0000 é', context });
  const sessions = (await store.listSessions({ context })).items;
  return { tenant, leaf: leaf!.snapshotId, snapshots: snapshots.map((snapshot) => snapshot!), sessions };
}

/** Records as text, and their data. */
export interface GoldenRecords {
  documents: Record<string, unknown>;
  expected: { tenant: string; records: ScopeRecord[] }[];
}

async function playRecords(store: FirestoreSessionStore, context: Record<string, unknown>): Promise<void> {
  const record = { '': [[]], 'a.b': '\uD800', n: 1, text: 'x'.repeat(500) };
  await store.saveSnapshot('one', () => ({ createdAt: '2026-01-01T00:00:00.000Z' }), {
    context,
    scopes: RECORDS.map((id) => ({ id, change: () => record })),
  });
}

export async function readGoldenRecords(
  store: FirestoreSessionStore,
  tenant: string,
): Promise<GoldenRecords['expected'][number]> {
  return { tenant, records: await store.readScopes({ scopes: RECORDS, context: { tenant } }) };
}

/** Changes the records once more. */
export async function goOn(store: FirestoreSessionStore, tenant: string): Promise<void> {
  await store.saveSnapshot('two', () => ({ createdAt: '2026-01-01T00:00:00.000Z' }), {
    context: { tenant },
    scopes: RECORDS.map((id) => ({ id, change: (record) => ({ ...record, n: Number(record['n']) + 1 }) })),
  });
}

/** Session records as text, and their data. */
export interface GoldenSessionRecords {
  documents: Record<string, unknown>;
  expected: { tenant: string; sessionRecords: SessionRecord[] }[];
}

const SESSION = 'chat \u0000 é';

async function playSessionRecords(store: FirestoreSessionStore, context: Record<string, unknown>): Promise<void> {
  const record = { sessionId: SESSION, context };
  await store.writeRecord({
    ...record,
    kind: 'note',
    key: 'waits',
    value: [[], { 'a.b': '\uD800', ['__proto__']: 1 }],
  });
  const first = { sessionId: SESSION, createdAt: '2026-01-01T00:00:00.000Z' };
  await store.saveSnapshot('one', () => first, { context });
  await store.writeRecord({ ...record, kind: 'a/b', key: '\uDC00', value: 'x'.repeat(500), ifSnapshot: 'one' });
  const expectedRevision = await store.writeRecord({ ...record, kind: 'a/b', key: 'b', value: 1 });
  await store.writeRecord({ ...record, kind: 'a/b', key: 'b', value: 2, expectedRevision });
}

export async function readGoldenSessionRecords(
  store: FirestoreSessionStore,
  tenant: string,
): Promise<GoldenSessionRecords['expected'][number]> {
  return { tenant, sessionRecords: await store.readRecords({ sessionId: SESSION, context: { tenant } }) };
}

/** Replaces each record by a list of two. */
export async function doubleRecords(
  store: FirestoreSessionStore,
  { tenant, sessionRecords }: GoldenSessionRecords['expected'][number],
): Promise<void> {
  for (const { kind, key, value, revision } of sessionRecords) {
    const record = { sessionId: SESSION, kind, key, context: { tenant } };
    await store.writeRecord({ ...record, value: [value, value], expectedRevision: revision, ifSnapshot: 'one' });
  }
}

/** JSON has neither bytes nor times. */
export function toJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString('base64') };
  if (value instanceof Timestamp) return { $time: [value.seconds, value.nanoseconds] };
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toJson(member)]));
}

export function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value !== 'object' || value === null) return value;
  const { $bytes, $time } = value as { $bytes?: string; $time?: [number, number] };
  if ($bytes !== undefined) return Buffer.from($bytes, 'base64');
  if ($time !== undefined) return new Timestamp(...$time);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, fromJson(member)]));
}

async function main(file: string): Promise<void> {
  const db = openDatabase();
  const store = openGolden(db);
  const [, kind = ''] = /firestore-(.*)\d+\.json$/.exec(file) ?? [];
  const [write, read] = {
    '': [play, readGolden] as const,
    'records-': [playRecords, readGoldenRecords] as const,
    'session-records-': [playSessionRecords, readGoldenSessionRecords] as const,
  }[kind]!;
  for (const tenant of TENANTS) await write(store, { tenant });
  const documents = (await allDocuments(db)).map((document) => [document.ref.path, toJson(document.data())]);
  const expected = await Promise.all(TENANTS.map((tenant) => read(store, tenant)));
  const golden = { documents: Object.fromEntries(documents), expected };
  writeFileSync(file, `${JSON.stringify(golden)}\n`, { flag: 'wx' });
  await db.terminate();
}

const [script, file] = process.argv.slice(1);
if (file !== undefined && import.meta.url === pathToFileURL(script ?? '').href) await main(file);
