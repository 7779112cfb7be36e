import { randomBytes, randomUUID } from 'node:crypto';
import { FirestoreMemoryStore } from 'genkitx-agents/google-cloud';
import { envelope, localKeys } from 'genkitx-agents/privacy';
import { memoryStoreConformance } from 'genkitx-agents/testing';
import { afterAll, describe, it } from 'vitest';
import { isTorture } from '../../../support/scale.ts';
import { textOfDocuments } from '../support/all-text.ts';
import { clearProject, newProject, openDatabase } from '../support/database.ts';

const project = newProject();
const [first, second] = [openDatabase(project), openDatabase(project)];
afterAll(() => clearProject(project).catch(() => {}));

const keys = localKeys(randomBytes(32));

for (const isEncrypted of [false, true]) {
  memoryStoreConformance({
    name: isEncrypted ? 'FirestoreMemoryStore with encryption' : 'FirestoreMemoryStore',
    runner: { describe, it },
    capabilities: new FirestoreMemoryStore({ db: first }).capabilities,
    tenants: true,
    effort: isTorture ? 0.02 : 0.005,
    ...(isEncrypted && { subjects: ['memories', 'notes', ...(isTorture ? ['removal'] : [])] }),
    open: async (options) => {
      const collection = `kit-${randomUUID()}`;
      const open = (db = first): FirestoreMemoryStore =>
        new FirestoreMemoryStore({
          db,
          collection,
          ...options,
          ...(isEncrypted && { encryption: envelope({ keys }) }),
        });
      const [a, b] = [open(), open(second)];
      return {
        a,
        b,
        reopen: async () => open(),
        dump: () => textOfDocuments(first, collection),
        close: async () => {
          await Promise.all([a.close(), b.close()]);
        },
      };
    },
  });
}
