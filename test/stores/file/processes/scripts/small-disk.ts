/** Fills the given file system, makes it read-only, and frees it again. Prints the results of the store. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { SessionSnapshotInput } from '../../../../../src/store/contract.ts';
import { FileSessionStore } from '../../../../../stores/file/file-session-store.ts';

const mountPoint = process.argv[2]!;
const open = () => new FileSessionStore(join(mountPoint, 'sessions'));
const acknowledged = new Map<string, string>();

async function save(store: FileSessionStore, sessionId: string, id: string): Promise<string> {
  const text = randomBytes(8000).toString('hex');
  const turn: SessionSnapshotInput = {
    sessionId,
    createdAt: new Date().toISOString(),
    status: 'completed',
    state: { custom: { text } },
  };
  try {
    await store.saveSnapshot(id, () => turn);
  } catch (error) {
    return (error as { status?: string }).status ?? String(error);
  }
  acknowledged.set(id, text);
  return 'saved';
}

/** Whether a newly opened store has the acknowledged saves, and not `refusedId`. */
async function isIntact(refusedId: string): Promise<boolean> {
  const store = open();
  for (const [id, text] of acknowledged) {
    const custom = (await store.getSnapshot({ snapshotId: id }))?.state?.custom as { text?: string } | undefined;
    if (custom?.text !== text) return false;
  }
  const refused = await store.getSnapshot({ snapshotId: refusedId });
  await store.close();
  return refused === undefined;
}

const store = open();
await save(store, 'filler', 'filler');
let whenFull: string;
do whenFull = await save(store, 'chat', `turn-${acknowledged.size}`);
while (whenFull === 'saved');
const wasIntactFull = await isIntact(`turn-${acknowledged.size}`);

execFileSync('mount', ['-o', 'remount,ro', mountPoint]);
const whenReadOnly = await save(store, 'chat', 'read-only');
const wasIntactReadOnly = await isIntact('read-only');

execFileSync('mount', ['-o', 'remount,rw,size=8m', mountPoint]);
const whenFree = await save(store, 'chat', 'free');
const wasIntactFree = await isIntact('none');
await store.close();
const saves = acknowledged.size;
console.log(
  JSON.stringify({ saves, whenFull, wasIntactFull, whenReadOnly, wasIntactReadOnly, whenFree, wasIntactFree }),
);
