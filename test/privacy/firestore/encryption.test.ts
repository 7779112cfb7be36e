import { readFileSync } from 'node:fs';
import { Firestore, Timestamp, type DocumentSnapshot, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import { GenkitError } from 'genkit';
import type { ScopeId, ScopeRecord } from 'genkitx-agents';
import { FirestoreMemoryStore, FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { envelope, localKeys, type Encryption } from 'genkitx-agents/privacy';
import { afterAll, describe, expect, it } from 'vitest';
import { allDocuments, measureAtRest } from '../../stores/firestore/support/at-rest.ts';
import { openDatabase } from '../../stores/firestore/support/database.ts';
import { fromJson } from '../../stores/firestore/support/golden.ts';
import { applyTtlPolicy, DAY, passTime } from '../../stores/firestore/support/time.ts';
import { Random } from '../../support/random.ts';
import { scale, seed } from '../../support/scale.ts';
import { encryptsAtRest, type EncryptedMedium } from '../encryption/encryption-suite.ts';
import {
  ADA,
  CANARY,
  completed,
  encryptionWith,
  eraseTwice,
  expectNoMemoriesWithoutKeys,
  saveWithoutSession,
  fillSession,
  keyStoreOf,
  readSession,
  secret,
  type Store,
} from '../encryption/support.ts';

const databases: Firestore[] = [];
afterAll(() => Promise.all(databases.map((db) => db.terminate())));

function database(): Firestore {
  const db = openDatabase();
  databases.push(db);
  return db;
}

/** Small shards, so that whole states are in many, and large checkpoints outside of their documents. */
function open(db: Firestore, encryption?: Encryption): Store & FirestoreSessionStore {
  const options = { db, checkpointInterval: 3, shardSize: 4096 };
  return new FirestoreSessionStore<never>({ ...options, ...(encryption && { encryption }) }) as never;
}

/** All bytes and texts of a document, and its name. */
function contentOf(document: QueryDocumentSnapshot): Buffer {
  const parts: Buffer[] = [Buffer.from(document.ref.path)];
  const visit = (value: unknown): void => {
    if (typeof value === 'string') parts.push(Buffer.from(value));
    else if (value instanceof Uint8Array) parts.push(Buffer.from(value));
    else if (typeof value === 'object' && value !== null)
      for (const entry of Object.entries(value)) entry.forEach(visit);
  };
  visit(document.data());
  return Buffer.concat(parts);
}

async function collectionsWith(db: Firestore, text: string): Promise<string[]> {
  const found = (await allDocuments(db)).filter((document) => contentOf(document).includes(text));
  return [...new Set(found.map((document) => document.ref.parent.id))].toSorted();
}

/** A database of its own. */
function medium(): EncryptedMedium {
  const db = database();
  return {
    open: (encryption) => open(db, encryption),
    openDefault: (encryption) => new FirestoreSessionStore({ db, ...(encryption && { encryption }) }),
    placesWith: (text) => collectionsWith(db, text),
    bytes: async () => (await measureAtRest(db)).bytes,
    loadGolden: async () => {
      const golden = readFileSync(new URL('../../golden/firestore-encrypted-2.json', import.meta.url), 'utf8');
      for (const [path, data] of Object.entries(JSON.parse(golden) as object)) {
        await db.doc(path).set(fromJson(data) as object);
      }
    },
  };
}

describe('encrypted documents', () => {
  encryptsAtRest({ medium, prunesWithoutKey: false });

  it('hold no clear text: a raw scan of the database finds a canary of every field nowhere', async () => {
    const [clear, sealed] = [database(), database()];
    for (const [db, encryption] of [
      [clear, undefined],
      [sealed, encryptionWith('a')],
    ] as const) {
      const store = open(db, encryption);
      // Short text is not deflated, so that clear text is found.
      await fillSession(store, 'chat', 3, false);
      await store.saveSnapshot(
        'short',
        completed({
          sessionId: 'short',
          error: { status: 'INTERNAL', message: CANARY },
          state: { custom: { CANARY } },
        }),
      );
      await store.writeRecord({ sessionId: 'short', kind: 'k', key: 'k', value: CANARY });
      await store.saveSnapshot(
        'short-2',
        completed({ sessionId: 'short', parentId: 'short', state: { custom: { CANARY, more: CANARY } } }),
        {
          session: { title: CANARY },
          scopes: [{ id: { scope: 'app', appName: 'shop' }, change: () => ({ CANARY }) }],
        },
      );
      await saveWithoutSession(store, 'alone');
    }
    expect(await collectionsWith(clear, CANARY)).toEqual(['pointers', 'records', 'scopes', 'snapshots']);
    expect(await collectionsWith(sealed, CANARY)).toEqual([]);
  });

  it('of equal sessions have no bytes in common', async () => {
    const db = database();
    const store = open(db, encryptionWith('a'));
    const words = Array.from({ length: 4000 }, (_, index) => `word ${index * 7919}`);
    for (const session of ['one', 'two'])
      await store.saveSnapshot(session, completed({ sessionId: session, state: { custom: { words } } }));
    const shards = (await allDocuments(db)).filter((document) => document.ref.parent.id === 'shards');
    expect(shards.length).toBeGreaterThan(4);
    expect(new Set(shards.map((shard) => shard.id.slice(-22))).size).toBe(shards.length);
    expect(new Set(shards.map((shard) => (shard.get('data') as Buffer).toString('hex'))).size).toBe(shards.length);
  });

  it('with a key store: deleting and pruning sessions removes their keys, and one that is begun again has its own', async () => {
    const keys = new Map<string, Uint8Array>();
    const encryption = (): Encryption => envelope({ keys: localKeys(secret('a')), keyStore: keyStoreOf(keys) });
    const db = database();
    const [store, remembers] = [open(db, encryption()), open(db, encryption())];
    for (const session of ['chat', 'other']) await fillSession(store, session);
    expect((await remembers.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('chat-6');
    const ofChat = (): string[] => [...keys.keys()].filter((name) => name.includes('"chat"'));
    const before = ofChat();
    expect(before).toHaveLength(2);
    await store.deleteSession({ sessionId: 'chat' });
    expect(ofChat()).toEqual([]);
    await remembers.saveSnapshot('anew', completed({ sessionId: 'chat', state: {} }));
    await remembers.writeRecord({ sessionId: 'chat', kind: 'k', key: 'k', value: 1 });
    const fresh = open(db, encryption());
    expect((await fresh.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('anew');
    expect(await fresh.readRecords({ sessionId: 'chat' })).toHaveLength(1);
    await fresh.deleteScope({ scope: ADA });
    const ofOld = (name: string): boolean => before.some((one) => name.startsWith(one.slice(0, -24)));
    expect(ofChat().filter((name) => !ofOld(name)).length).toBeGreaterThan(0);
    // A key that the process created for the old incarnation, before it knew of the deletion, may stay: no data is under it.
    await fresh.prune({ idleMs: 0 });
    expect((await fresh.listSessions()).items).toEqual([]);
    expect([...keys.keys()].filter((name) => !ofOld(name))).toEqual([]);
  });
});

it('a save of a cached record whose key can’t be reached fails while another record is read', async () => {
  const real = encryptionWith('a');
  let isDown = false;
  const encryption: Encryption = {
    cipher: async (owner, reopen) => {
      if (isDown && owner.kind === 'scope') throw new GenkitError({ status: 'UNAVAILABLE', message: 'no keys' });
      return real.cipher(owner, reopen);
    },
    open: (...sealed) => real.open(...sealed),
    forget: (owner) => real.forget(owner),
  };
  const db = database();
  const ids: ScopeId[] = [ADA, { scope: 'app', appName: 'shop' }];
  const scopes = ids.map((id) => ({ id, change: (record: ScopeRecord) => ({ n: Number(record['n'] ?? 0) + 1 }) }));
  await open(db, encryption).saveSnapshot('one', completed({ sessionId: 'chat', state: {} }), { scopes });
  const store = open(db, encryption);
  await store.readScopes({ scopes: ids.slice(0, 1) });
  isDown = true;
  const save = store.saveSnapshot('two', completed({ sessionId: 'chat', parentId: 'one', state: {} }), { scopes });
  await expect(save).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  isDown = false;
  expect(await store.readScopes({ scopes: ids })).toEqual([{ n: 1 }, { n: 1 }]);
});

describe('with a key store, once Firestore’s TTL policy has removed an expired session’s pointer,', () => {
  /** A session with records that has expired, and a record that waits for the session to begin again. */
  async function expired(waits: boolean) {
    const db = database();
    const keys = new Map<string, Uint8Array>();
    const encryption = envelope({ keys: localKeys(secret('a')), keyStore: keyStoreOf(keys) });
    const store = new FirestoreSessionStore({ db, encryption, expireAfterMs: DAY });
    const note = { sessionId: 'chat', kind: 'note' };
    await store.saveSnapshot('one', completed({ sessionId: 'chat', state: {} }));
    await store.saveSnapshot('other', completed({ sessionId: 'other', state: {} }));
    for (const sessionId of ['chat', 'other']) await store.writeRecord({ ...note, sessionId, key: 'a', value: 'text' });
    await store.writeRecord({ ...note, key: 'b', value: 'text', ifSnapshot: 'one' });
    const pointer = db.doc('genkit-sessions-pointers/global/pointers/chat');
    await passTime(db, 2 * DAY);
    await store.saveSnapshot('other', completed({ sessionId: 'other', state: {} }));
    await store.writeRecord({ ...note, sessionId: 'other', key: 'a', value: 'text' });
    const last = await pointer.get();
    await applyTtlPolicy(db);
    if (waits) await store.writeRecord({ ...note, key: 'late', value: 'text' });
    const other = new FirestoreSessionStore({ db, encryption, expireAfterMs: DAY });
    return { store: other, last, keysOf: (id: string) => [...keys.keys()].filter((name) => name.includes(`"${id}"`)) };
  }

  it.each([
    ['prune', async (store: FirestoreSessionStore) => store.prune({ idleMs: 1e12 })],
    ['removeExpired', async (store: FirestoreSessionStore, last: DocumentSnapshot) => store.removeExpired(last)],
  ])(
    '%s removes the keys of its snapshots and its records, and leaves that of a record that waits',
    async (_, remove) => {
      const { store, last, keysOf } = await expired(false);
      expect(keysOf('chat').length).toBeGreaterThan(1);
      await remove(store, last);
      expect(keysOf('chat')).toEqual([]);
      expect(await store.readRecords({ sessionId: 'other' })).toHaveLength(1);

      const waiting = await expired(true);
      await remove(waiting.store, waiting.last);
      const records = await waiting.store.readRecords({ sessionId: 'chat' });
      expect(records.map(({ key, value }) => [key, value])).toEqual([['late', 'text']]);
    },
  );

  it('prune removes the key of records whose session never began, with the last of them', async () => {
    const db = database();
    const keys = new Map<string, Uint8Array>();
    const encryption = envelope({ keys: localKeys(secret('a')), keyStore: keyStoreOf(keys) });
    const store = new FirestoreSessionStore({ db, encryption });
    for (const key of ['one', 'two']) await store.writeRecord({ sessionId: 'chat', kind: 'note', key, value: 'text' });
    for (const [at, { ref }] of (await allDocuments(db)).entries()) {
      await ref.update({ written: Timestamp.fromMillis(0) });
      await store.prune({ idleMs: 1e12 });
      expect(keys.size).toBe(1 - at);
    }
    expect(await allDocuments(db)).toEqual([]);
  });
});

it('memories do not continue once their keys are gone from the key store; erased, they begin again', async () => {
  const db = database();
  await expectNoMemoriesWithoutKeys((encryption) => new FirestoreMemoryStore({ db, encryption }));
});

it('eraseUser with a memory whose key could not be removed removes it the next time', async () => {
  expect(await eraseTwice((encryption) => new FirestoreMemoryStore({ db: database(), encryption }))).toEqual([]);
});

/** The bytes of a field, and where the ciphertext in them begins: heads and pointers have some in clear before it. */
function bytesOf(document: QueryDocumentSnapshot, field: string): { bytes: Buffer; start: number } {
  const bytes = document.get(field) as Buffer;
  return { bytes, start: bytes[0] === 3 ? 5 + bytes.readUInt32BE(1) : 0 };
}

describe('damaged ciphertext: documents', () => {
  const count = scale(12, 500);

  it(`${count} damages: each snapshot and record reads as before or answers DATA_LOSS with the session, others are not affected (seed ${seed})`, async () => {
    const db = database();
    const encryption = encryptionWith('a');
    const writer = open(db, encryption);
    for (const session of ['one', 'two']) await fillSession(writer, session, 3, false);
    const read = async (): Promise<Record<string, Record<string, unknown>>> => {
      const store = open(db, encryption);
      const ids = (session: string): string[] => [1, 2, 3].map((turn) => `${session}-${turn}`);
      return { one: await readSession(store, 'one', ids('one')), two: await readSession(store, 'two', ids('two')) };
    };
    const whole = await read();
    const documents = (await allDocuments(db)).filter((document) => document.ref.parent.id !== 'scopes');
    const pieces = documents.flatMap((document) =>
      Object.entries(document.data()).flatMap(([field, value]) =>
        value instanceof Uint8Array &&
        (bytesOf(document, field).start > 0 || !['head', 'info', 'name', 'scope'].includes(field))
          ? [{ document, field }]
          : [],
      ),
    );
    const random = new Random(seed);
    let lost = 0;
    for (let at = 0; at < count; at++) {
      const { document, field } = random.pick(pieces);
      const other = random.pick(pieces.filter((piece) => piece.field === field || at % 2 === 0));
      const { bytes: stored, start } = bytesOf(document, field);
      const damaged = Buffer.from(stored);
      const isSwap = at % 3 === 0 && (start === 0 || field === 'head');
      if (!isSwap) damaged[start + random.below(damaged.length - start)]! ^= 1 << random.below(8);
      const bytes = isSwap ? Buffer.from(other.document.get(other.field) as Buffer) : damaged;
      await document.ref.update({ [field]: bytes });
      const answers = await read();
      const place = `${isSwap ? 'other bytes' : 'a flipped bit'} in ${field} of ${document.ref.path} (damage ${at})`;
      for (const [session, snapshots] of Object.entries(whole)) {
        for (const [name, before] of Object.entries(snapshots)) {
          const answer = answers[session]![name];
          if (!(answer instanceof GenkitError)) {
            expect(answer, `${name} after ${place}`).toEqual(before);
            continue;
          }
          lost++;
          expect(answer.status, `${name} after ${place}: ${answer.message}`).toBe('DATA_LOSS');
          // If the head belongs to another snapshot, the session is unknown.
          expect(answer.message).toMatch(new RegExp(`"${session}(-\\d)?"`));
        }
      }
      await document.ref.update({ [field]: document.get(field) as Buffer });
    }
    expect(lost).toBeGreaterThan(count / 2);
    expect(await read()).toEqual(whole);
  });
});
