/** A process that works on a store for a test: does one task for each message, and answers each. Run by `Worker` in `processes.ts`. */
import { writeSync } from 'node:fs';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import type { SessionSnapshot, SnapshotStatus } from '../../../../src/store/contract.ts';
import { Random } from './random.ts';

/** What a worker can be told to do. */
export type Task =
  /** Adds 1 to the counter in a snapshot's state, so many times. */
  | { readonly do: 'increment'; readonly folder: string; readonly id: string; readonly times: number }
  /** Sets a snapshot's status; answers whether that went through. `pending` is a heartbeat. */
  | { readonly do: 'settle'; readonly folder: string; readonly id: string; readonly status: SnapshotStatus }
  /** Takes the lock of the session that the snapshot is in, says `holding`, and keeps it until killed. */
  | { readonly do: 'hold'; readonly folder: string; readonly id: string }
  /** Saves turns to several sessions until killed, and writes a line for each that was acknowledged. */
  | { readonly do: 'chat'; readonly folder: string; readonly sessions: number; readonly seed: number };

export interface Counter {
  n: number;
}

const stores = new Map<string, FileSessionStore<Counter>>();

function storeOf(folder: string): FileSessionStore<Counter> {
  const store = stores.get(folder) ?? new FileSessionStore<Counter>(folder, { checkpointInterval: 5 });
  stores.set(folder, store);
  return store;
}

async function perform(task: Task): Promise<unknown> {
  const store = storeOf(task.folder);
  switch (task.do) {
    case 'increment':
      for (let i = 0; i < task.times; i++) await store.saveSnapshot(task.id, incremented);
      return undefined;
    case 'settle':
      return settle(store, task.id, task.status);
    case 'hold':
      await store.saveSnapshot(task.id, () => {
        writeSync(1, 'holding\n');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
        return null;
      });
      return undefined;
    case 'chat':
      return chat(store, task.sessions, new Random(task.seed));
  }
}

function incremented(current: SessionSnapshot<Counter> | undefined): SessionSnapshot<Counter> {
  const n = current?.state?.custom?.n ?? 0;
  return { ...current!, status: 'pending', state: { ...current?.state, custom: { n: n + 1 } } };
}

async function settle(store: FileSessionStore<Counter>, id: string, status: SnapshotStatus): Promise<string> {
  try {
    const saved = await store.saveSnapshot(id, (current) => {
      if (status === 'pending' && current?.status !== 'pending') return null;
      return { ...current!, status, updatedAt: new Date().toISOString() };
    });
    return saved === null ? 'skipped' : 'saved';
  } catch (error) {
    return (error as { status?: string }).status ?? String(error);
  }
}

async function chat(store: FileSessionStore<Counter>, sessions: number, random: Random): Promise<never> {
  for (;;) {
    const sessionId = `session-${random.below(sessions)}`;
    const leaf = await store.getSnapshot({ sessionId });
    const n = (leaf?.state?.custom?.n ?? 0) + 1;
    const text = `${n} `.repeat(random.below(400));
    const messages = [...(leaf?.state?.messages ?? []), { role: 'user' as const, content: [{ text }] }];
    const id = await store.saveSnapshot(`${sessionId}-${n}`, () => ({
      sessionId,
      createdAt: new Date().toISOString(),
      status: 'completed',
      ...(leaf && { parentId: leaf.snapshotId }),
      state: { messages: messages.slice(-40), custom: { n } },
    }));
    writeSync(1, `saved ${sessionId} ${n} ${id}\n`);
  }
}

process.on('message', (task: Task) => {
  perform(task).then(
    (result) => process.send!({ result }),
    (error: unknown) => process.send!({ error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }),
  );
});
process.send!({ result: 'ready' });
