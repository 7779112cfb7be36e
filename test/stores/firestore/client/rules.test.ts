import { readFileSync } from 'node:fs';
import { assertFails, assertSucceeds, initializeTestEnvironment } from '@firebase/rules-unit-testing';
import { collection, deleteDoc, doc, getDoc, getDocs, setDoc, updateDoc } from 'firebase/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allDocuments } from '../support/at-rest.ts';
import { emulatorHost, newProject, openDatabase } from '../support/database.ts';

const RULES = { 'firestore.rules': false, 'docs/firestore-read-own.rules': true };

for (const [path, mayReadOwn] of Object.entries(RULES)) {
  describe(path, () => {
    const projectId = newProject();
    const db = openDatabase(projectId);
    let environment: Awaited<ReturnType<typeof initializeTestEnvironment>>;
    let paths: string[];

    beforeAll(async () => {
      const [host, port] = emulatorHost().split(':') as [string, string];
      const rules = readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8');
      environment = await initializeTestEnvironment({ projectId, firestore: { rules, host, port: Number(port) } });
      const store = new FirestoreSessionStore({
        db,
        snapshotPathPrefix: (options) => String(options?.context?.['uid']),
      });
      for (const uid of ['ann', 'bob', 'eve/é']) {
        const messages = Array.from({ length: 50 }, () => ({
          role: 'user' as const,
          content: [{ text: 'x'.repeat(400) }],
        }));
        const turn = { sessionId: 'chat', createdAt: '2026-01-01T00:00:00.000Z', state: { messages } };
        const scopes = [{ id: { scope: 'user', appName: 'shop', userId: uid } as const, change: () => ({ n: 1 }) }];
        await store.saveSnapshot('turn', () => turn, { context: { uid }, scopes });
        const alone = { createdAt: '2026-01-01T00:00:00.000Z', parentId: 'another' };
        await store.saveSnapshot('alone', () => alone, { context: { uid } });
        await store.writeRecord({ sessionId: 'chat', kind: 'note', key: uid, value: uid, context: { uid } });
      }
      paths = (await allDocuments(db)).map((document) => document.ref.path);
    });
    afterAll(async () => {
      await environment.cleanup();
    });

    it(`lets a signed-in user read ${mayReadOwn ? 'the documents of their own snapshots' : 'nothing'}`, async () => {
      // A document of each collection, and of the snapshot without a session.
      expect(paths).toHaveLength(18);
      const ann = environment.authenticatedContext('ann').firestore();
      for (const one of paths) {
        const isOwn = one.startsWith('genkit-sessions/ann/');
        await (mayReadOwn && isOwn ? assertSucceeds : assertFails)(getDoc(doc(ann, one)));
      }
      const own = getDocs(collection(ann, 'genkit-sessions/ann/snapshots'));
      await (mayReadOwn ? assertSucceeds : assertFails)(own);
      await assertFails(getDocs(collection(ann, 'genkit-sessions/bob/snapshots')));
    });

    it('lets no user read the tenant of another whose user id is hashed', async () => {
      const hashed = new Set(paths.map((one) => one.split('/')[1]!).filter((tenant) => tenant.startsWith('~')));
      expect(hashed.size).toBe(1);
      for (const uid of [...hashed, 'eve/é']) {
        const user = environment.authenticatedContext(uid).firestore();
        for (const one of paths) await assertFails(getDoc(doc(user, one)));
      }
    });

    it('lets no client write, and an unauthenticated client read nothing', async () => {
      const clients = [environment.authenticatedContext('ann'), environment.unauthenticatedContext()];
      for (const [i, client] of clients.entries()) {
        const firestore = client.firestore();
        for (const one of paths) {
          await assertFails(setDoc(doc(firestore, one), { v: 2 }));
          await assertFails(updateDoc(doc(firestore, one), { v: 2 }));
          await assertFails(deleteDoc(doc(firestore, one)));
          if (i === 1) await assertFails(getDoc(doc(firestore, one)));
        }
        for (const one of paths) await assertFails(setDoc(doc(firestore, `${one}-new`), { v: 1 }));
      }
    });
  });
}
