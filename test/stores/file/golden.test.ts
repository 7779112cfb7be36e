import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSessionStore, type SessionSnapshot } from 'genkitx-agents';
import { describe, expect, it } from 'vitest';

const golden = join(import.meta.dirname, '../../golden/file-v1');
const expected = JSON.parse(readFileSync(join(golden, 'expected.json'), 'utf8')) as SessionSnapshot[];

describe('a directory that format 1 wrote', () => {
  it('reads as it was saved, and goes on', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-golden-'));
    try {
      cpSync(join(golden, 'store'), folder, { recursive: true });
      const store = new FileSessionStore(folder);
      const sessionId = 'Golden ✨';
      const { items } = await store.listSnapshots({ sessionId });
      expect(items.map((item) => item.snapshotId)).toEqual(expected.map((snapshot) => snapshot.snapshotId));
      for (const snapshot of expected) {
        expect(await store.getSnapshot({ snapshotId: snapshot.snapshotId })).toEqual(snapshot);
      }
      const leaf = await store.getSnapshot({ sessionId });
      expect(leaf?.snapshotId).toBe('Snapshot/8');
      await store.saveSnapshot('next', () => ({ ...leaf!, snapshotId: 'next', parentId: leaf!.snapshotId }));
      expect((await store.getSnapshot({ sessionId }))?.snapshotId).toBe('next');
      await store.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
