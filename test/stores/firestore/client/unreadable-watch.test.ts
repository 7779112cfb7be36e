import type { Firestore } from '@google-cloud/firestore';
import { logger } from 'genkit/logging';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { encryptionWith } from '../../../privacy/encryption/support.ts';
import { openDatabase } from '../support/database.ts';
import { makeTurn } from '../../make-turn.ts';

/** Text that packing makes little shorter. */
const TEXT = Array.from({ length: 3000 }, (_, i) => Math.sin(i)).join();

const turn = (n: number): SessionSnapshotInput =>
  makeTurn({ status: n === 0 ? 'pending' : 'completed', state: { custom: { n, text: `${n} ${TEXT}` } } });

describe('a watcher of a snapshot that can’t be read', () => {
  let db: Firestore;
  const open = (options = {}): FirestoreSessionStore => new FirestoreSessionStore({ db, shardSize: 4096, ...options });
  beforeEach(() => {
    db = openDatabase();
    const set = globalThis.setTimeout;
    // Sets listeners up again without a pause.
    vi.spyOn(globalThis, 'setTimeout').mockImplementation((work, ms = 0) =>
      set(work, ms >= 200 && ms <= 2000 ? 0 : ms),
    );
  });
  afterEach(() => void vi.restoreAllMocks());

  const document = 'genkit-sessions/global/snapshots/one';
  const encryption = encryptionWith('a');
  const cases: [string, () => Promise<unknown>, object?][] = [
    ['because the store has no key', async () => {}, { encryption }],
    ['because it is damaged', () => db.doc(document).update({ head: Buffer.from('junk') })],
    ['because a newer version wrote it', () => db.doc(document).update({ v: 99 })],
    [
      'because a shard is missing',
      async () => {
        const [first] = (await db.doc(document).get()).get('shards') as string[];
        await db.doc(`genkit-sessions-shards/global/shards/${first}`).delete();
      },
    ],
  ];
  it.each(cases)(
    '%s reads each version once, logs one line, and is notified of a later version',
    async (_, spoil, options) => {
      const errors = vi.spyOn(logger, 'error').mockImplementation(() => {});
      await open(options).saveSnapshot('one', () => turn(0));
      await spoil();
      const watching = open();
      const heard: unknown[] = [];
      const end = watching.onSnapshotStateChange('one', ({ status }) => heard.push(status));
      await expect.poll(() => errors.mock.calls.length).toBeGreaterThan(0);
      const { reads, rpcs } = watching.stats();
      for (let i = 0; i < 20; i++) await db.doc('other/document').get();
      expect(watching.stats()).toMatchObject({ reads, rpcs });
      expect(errors.mock.calls.map(([line]) => line as string)).toEqual([expect.stringContaining('"one"')]);

      await open().deleteSession({ sessionId: 'chat' });
      await open().saveSnapshot('one', () => turn(1));
      await expect.poll(() => heard).toEqual(['completed']);
      end();
      await watching.close();
    },
  );
});
