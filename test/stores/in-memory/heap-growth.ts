/** Run with `--expose-gc` by the test of that name: prints how the heap grows, in bytes, as one line of JSON. */
import { completedSnapshot, Workload } from '../../../bench/workload.ts';
import { InMemorySessionStore } from '../../../stores/in-memory/in-memory-session-store.ts';

const TURNS = 500;

function heap(): number {
  for (let i = 0; i < 3; i++) globalThis.gc!();
  return process.memoryUsage().heapUsed;
}

/** One store turn; the state arrives as it would from another process, so that the store shares nothing with the workload. */
async function turn(store: InMemorySessionStore, workload: Workload): Promise<void> {
  const state = JSON.parse(JSON.stringify(workload.next())) as ReturnType<Workload['next']>;
  const leaf = await store.getSnapshot({ sessionId: workload.sessionId });
  await store.saveSnapshot(undefined, () => completedSnapshot(state, leaf?.snapshotId));
}

/** Plays a session and drops the workload. Returns the bytes of new information. */
async function play(store: InMemorySessionStore, turns: number, sessionId?: string): Promise<number> {
  const workload = new Workload({ sessionId });
  for (let i = 0; i < turns; i++) await turn(store, workload);
  return workload.information;
}

/** A list of 4,000 elements in 200 versions, each with one more at its end and, when it slides, one less at its beginning. */
async function playList(store: InMemorySessionStore, sessionId: string, slides: boolean): Promise<void> {
  let list = Array.from({ length: 4000 }, (_, n) => ({ n }));
  for (let i = 0; i < 200; i++) {
    list = [...list.slice(slides ? 1 : 0), { n: 4000 + i }];
    await store.saveSnapshot(undefined, () => ({
      sessionId,
      createdAt: '',
      status: 'completed',
      state: { custom: { list } },
    }));
  }
}

const warm = new InMemorySessionStore();
await play(warm, 100);
await warm.close();

const store = new InMemorySessionStore();
const before = heap();
const information = await play(store, TURNS);
const session = heap() - before;

const beforeListeners = heap();
for (let i = 0; i < 10_000; i++) store.onSnapshotStateChange(`watched ${i}`, () => {})();
const listeners = heap() - beforeListeners;

await store.deleteSession({ sessionId: 'standard-workload' });
const afterDelete = heap() - before;
await play(store, 200);
// A session that was written in this very millisecond is not idle yet.
while ((await store.prune({ idleMs: 0 })).sessions === 0);
const afterPrune = heap() - before;
await play(store, 200);
await store.close();
const afterClose = heap() - before;

const growing = new InMemorySessionStore();
const beforeGrowing = heap();
await playList(growing, 'growing', false);
const grown = heap() - beforeGrowing;
const sliding = new InMemorySessionStore();
const beforeSliding = heap();
await playList(sliding, 'sliding', true);
const slid = heap() - beforeSliding;

console.log(JSON.stringify({ information, session, listeners, afterDelete, afterPrune, afterClose, grown, slid }));
await Promise.all([growing.close(), sliding.close()]);
