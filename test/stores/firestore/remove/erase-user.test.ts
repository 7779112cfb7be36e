import type { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { envelope, eraseUser, localKeys, type KeyStore } from 'genkitx-agents/privacy';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyStoreOf, mortalKeyStore, secret } from '../../../privacy/encryption/support.ts';
import { erasesKeys, erasesUsers, type Medium } from '../../../privacy/rights/erase-suite.ts';
import { scale } from '../../../support/scale.ts';
import { allDocuments } from '../support/at-rest.ts';
import { openDatabase } from '../support/database.ts';
import { plantUser } from '../support/plant-user.ts';
import { trafficOf, trafficSoFar } from '../support/transport.ts';

/** Small shards, so that every kind of document exists. */
function open(db: Firestore, keyStore?: KeyStore): FirestoreSessionStore {
  const encryption = keyStore && envelope({ keys: localKeys(secret('a')), keyStore });
  return new FirestoreSessionStore({ db, shardSize: 2048, ...(encryption && { encryption }) });
}

interface Mortal {
  /** Counts a commit, or another change that the process makes. */
  step: () => void;
  dieAfter: (changes: number) => void;
  isDead: () => boolean;
}

/** Commits of a client fail from some number on, as if its process had died. */
function mortal(db: Firestore): Mortal {
  let left = Infinity;
  const step = (): void => {
    if (left-- <= 0) throw new Error('killed');
  };
  const batch = db.batch.bind(db);
  db.batch = () => {
    const made = batch();
    const commit = made.commit.bind(made);
    made.commit = async () => {
      step();
      return commit();
    };
    return made;
  };
  return { step, dieAfter: (changes) => void (left = changes), isDead: () => left < 0 };
}

describe('eraseUser on Firestore', () => {
  const stores: FirestoreSessionStore[] = [];
  const opened = (db: Firestore, keyStore?: KeyStore): FirestoreSessionStore => {
    const store = open(db, keyStore);
    stores.push(store);
    return store;
  };
  afterAll(async () => void (await Promise.all(stores.map((store) => store.close()))));

  const medium = (keys?: Map<string, Uint8Array>): Medium => {
    const first = openDatabase();
    return {
      open: () => opened(first, keys && keyStoreOf(keys)),
      look: async () => {
        const documents = await allDocuments(first);
        return new Map(documents.map((document) => [document.ref.path, textOf(document.data())]));
      },
      dying: async (changes, work) => {
        const db = openDatabase((first as unknown as { projectId: string }).projectId);
        const { step, dieAfter, isDead } = mortal(db);
        const store = opened(db, keys && mortalKeyStore(keyStoreOf(keys), step));
        dieAfter(changes);
        await work(store).catch(() => {});
        return isDead();
      },
    };
  };

  erasesUsers(async () => medium());

  describe('encrypted, with a key store', () => {
    let keys: Map<string, Uint8Array>;
    erasesKeys(
      async () => medium((keys = new Map())),
      () => keys,
    );
  });

  describe('of many sessions', () => {
    let db: Firestore;
    beforeAll(() => {
      trafficSoFar();
      db = openDatabase();
    });

    const sessions = scale(150, 1000);
    it(`${sessions} of 10 turns and a record each: at most 2 requests for 100 documents`, async () => {
      const store = new FirestoreSessionStore({ db });
      await plantUser(store, { userId: 'ada', sessions });
      const documents = (await allDocuments(db)).length;
      expect(documents).toBe(sessions * 12);
      const erase = (userId: string) => eraseUser(new FirestoreSessionStore({ db }), { userId });
      // A small erasure needs some requests as well.
      const none = await trafficOf(() => erase('eve'));
      const used = await trafficOf(async () => {
        expect(await erase('ada')).toMatchObject({ sessions, snapshots: sessions * 10, records: sessions });
      });
      console.log(`${documents} documents: ${used.rpcs} requests; none: ${none.rpcs}`);
      const counted = sessions < 1000 ? used.rpcs - none.rpcs : used.rpcs;
      expect((counted * 100) / documents).toBeLessThanOrEqual(2);
      expect((await allDocuments(db)).map(({ ref }) => ref.parent.id)).toEqual(['scopes', 'scopes']);
    }, 1_200_000);
  });
});

/** The content of a document's fields, including bytes. */
function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  if (Array.isArray(value)) return value.map(textOf).join('\n');
  if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype) {
    return Object.entries(value)
      .map(([name, member]) => `${name} ${textOf(member)}`)
      .join('\n');
  }
  return JSON.stringify(value) ?? '';
}
