import type { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { eraseUser } from 'genkitx-agents/privacy';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { erasesUsers } from '../../privacy/rights/erase-suite.ts';
import { scale } from '../../support/scale.ts';
import { allDocuments } from './support/at-rest.ts';
import { openDatabase } from './support/database.ts';
import { plantUser } from './support/plant-user.ts';
import { trafficOf, trafficSoFar } from './support/transport.ts';

/** Small shards, so that every kind of document is there. */
const open = (db: Firestore): FirestoreSessionStore => new FirestoreSessionStore({ db, shardSize: 2048 });

/** Commits of a client fail from some number on, as if its process had died. */
function mortal(db: Firestore): { dieAfter: (commits: number) => void; isDead: () => boolean } {
  let left = Infinity;
  const batch = db.batch.bind(db);
  db.batch = () => {
    const made = batch();
    const commit = made.commit.bind(made);
    made.commit = async () => {
      if (left-- <= 0) throw new Error('killed');
      return commit();
    };
    return made;
  };
  return { dieAfter: (commits) => void (left = commits), isDead: () => left < 0 };
}

describe('eraseUser on Firestore', () => {
  const clients: Firestore[] = [];
  const stores: FirestoreSessionStore[] = [];
  const opened = (db: Firestore): FirestoreSessionStore => {
    const store = open(db);
    stores.push(store);
    return store;
  };
  afterAll(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await Promise.all(clients.map((db) => db.terminate()));
  });

  erasesUsers(async () => {
    const first = openDatabase();
    clients.push(first);
    return {
      open: () => opened(first),
      look: async () => {
        const documents = await allDocuments(first);
        return new Map(documents.map((document) => [document.ref.path, textOf(document.data())]));
      },
      dying: async (changes, work) => {
        const db = openDatabase((first as unknown as { projectId: string }).projectId);
        clients.push(db);
        const { dieAfter, isDead } = mortal(db);
        dieAfter(changes);
        await work(opened(db)).catch(() => {});
        return isDead();
      },
    };
  });

  describe('of many sessions', () => {
    let db: Firestore;
    beforeAll(() => {
      trafficSoFar();
      db = openDatabase();
      clients.push(db);
    });

    const sessions = scale(150, 1000);
    it(`${sessions} of 10 turns and a record each: at most 2 requests for 100 documents`, async () => {
      const store = new FirestoreSessionStore({ db });
      await plantUser(store, { userId: 'ada', sessions });
      const documents = (await allDocuments(db)).length;
      expect(documents).toBe(sessions * 12);
      const erase = (userId: string) => eraseUser(new FirestoreSessionStore({ db }), { userId });
      // An erasure that has little to do needs some requests all the same.
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

/** All that a document's fields hold, bytes as they are. */
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
