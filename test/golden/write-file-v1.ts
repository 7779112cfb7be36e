/** Writes the golden files of the file store's format 1 anew: `npx tsx test/golden/write-file-v1.ts`. Only while format 1 is the newest. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { FileSessionStore } from '../../stores/file/file-session-store.ts';

const folder = fileURLToPath(new URL('./file-v1', import.meta.url));
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
const store = new FileSessionStore(`${folder}/store`, { checkpointInterval: 3, maxPersistedChainLength: 6 });
const messages: { role: 'user'; content: { text: string }[] }[] = [];
let parentId: string | undefined;
for (let i = 1; i <= 8; i++) {
  messages.push({ role: 'user', content: [{ text: `message ${i} ${'lorem ipsum '.repeat(400)}` }] });
  const snapshotId = `Snapshot/${i}`;
  await store.saveSnapshot(snapshotId, () => ({
    sessionId: 'Golden ✨',
    ...(parentId !== undefined && { parentId }),
    createdAt: new Date(Date.UTC(2026, 0, i)).toISOString(),
    status: 'completed',
    state: { messages: [...messages], custom: { step: i, ['__proto__']: 'own' } },
  }));
  if (i !== 7) parentId = snapshotId;
}
const { items } = await store.listSnapshots({ sessionId: 'Golden ✨' });
const snapshots = await Promise.all(items.map(({ snapshotId }) => store.getSnapshot({ snapshotId })));
await store.close();
writeFileSync(`${folder}/expected.json`, `${JSON.stringify(snapshots)}\n`);
