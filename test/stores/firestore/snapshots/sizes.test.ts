import { randomBytes } from 'node:crypto';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../support/database.ts';
import { isTorture } from '../../../support/scale.ts';
import { trafficOf } from '../support/transport.ts';

const MB = 1024 * 1024;

/** Text that packing does not make much shorter. */
function noise(bytes: number): string {
  return randomBytes(Math.ceil(bytes / 2))
    .toString('hex')
    .slice(0, bytes);
}

function turn(texts: readonly string[], extra: object = {}, parentId?: string): SessionSnapshotInput {
  return {
    sessionId: 'large',
    createdAt: '2026-01-01T00:00:00.000Z',
    status: 'completed',
    ...(parentId !== undefined && { parentId }),
    state: { messages: texts.map((text) => ({ role: 'user', content: [{ text }] })), custom: extra },
  };
}

describe('size: no limit below maxStateBytes', () => {
  const db = openDatabase();

  for (const size of isTorture ? [5, 20, 50] : [5, 50]) {
    it(`a state of ${size} MB is saved, continued, and loaded by a new store`, async () => {
      const open = (): FirestoreSessionStore => new FirestoreSessionStore({ db, collection: `large-${size}` });
      const store = open();
      const texts = Array.from({ length: size * 4 }, () => noise(MB / 4));
      await store.saveSnapshot('one', () => turn(texts));
      await store.saveSnapshot('two', () => turn([...texts, 'and more'], {}, 'one'));
      const used = await trafficOf(async () => {
        const found = await open().getSnapshot({ sessionId: 'large' });
        expect(found?.snapshotId).toBe('two');
        expect(found?.state).toEqual(turn([...texts, 'and more']).state);
      });
      expect(used.reads).toBeLessThanOrEqual(4 + size * 2);
    });
  }

  it('a single message of 3 MB is saved and loaded, first or among others', async () => {
    const open = (): FirestoreSessionStore => new FirestoreSessionStore({ db, collection: 'message' });
    const long = noise(3 * MB);
    await open().saveSnapshot('one', () => turn(['short']));
    await open().saveSnapshot('two', () => turn(['short', long], {}, 'one'));
    await open().saveSnapshot('three', () => turn(['short', long, 'short'], {}, 'two'));
    for (const [id, texts] of [
      ['one', ['short']],
      ['two', ['short', long]],
      ['three', ['short', long, 'short']],
    ] as const) {
      expect((await open().getSnapshot({ snapshotId: id }))?.state).toEqual(turn(texts).state);
    }
  });

  it('10,000 large keys, whose paths alone fill a document, are saved and loaded', async () => {
    const open = (): FirestoreSessionStore => new FirestoreSessionStore({ db, collection: 'keys' });
    const filler = Array.from({ length: 10 }, (_, i) => ({ filler: i, text: 'x'.repeat(1000) }));
    const crowd = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`key ${i}`, [i, ...filler]]));
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, i]));
    await open().saveSnapshot('one', () => turn([], { crowd, many }));
    expect((await open().getSnapshot({ sessionId: 'large' }))?.state?.custom).toEqual({ crowd, many });
  });

  it('a state over maxStateBytes is refused without touching the network', async () => {
    const store = new FirestoreSessionStore({ db, collection: 'limit', maxStateBytes: MB });
    const used = await trafficOf(() =>
      expect(store.saveSnapshot('one', () => turn([noise(2 * MB)]))).rejects.toMatchObject({
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining('"one"'),
      }),
    );
    expect(used.rpcs).toBe(0);
  });

  it('metadata that fits into no document is refused without touching the network', async () => {
    const store = new FirestoreSessionStore({ db, collection: 'limit' });
    const used = await trafficOf(() =>
      expect(store.saveSnapshot('one', () => Object.assign(turn([]), { extra: noise(MB) }))).rejects.toMatchObject({
        status: 'INVALID_ARGUMENT',
      }),
    );
    expect(used.rpcs).toBe(0);
  });
});
