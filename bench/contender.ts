/**
 * One store under test. It has its own process, so that contenders share no heap, garbage or caches; the parent runs them in turns. Started by
 * `race.ts` only.
 */
import {
  FileSessionStore as GenkitFileStore,
  InMemorySessionStore as GenkitInMemoryStore,
  type SessionState,
  type SessionStore,
} from 'genkit/beta';
import { FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { envelope, localKeys, piiRules, redacting, type PrivacyRule } from 'genkitx-agents/privacy';
import { randomBytes, randomUUID } from 'node:crypto';
import { heapInUse, timed } from './measure.ts';
import { completedSnapshot, Workload, type WorkloadState } from './workload.ts';

type Store = SessionStore<WorkloadState>;

/** The store and the options of a contender. */
export interface ContenderSpec {
  name: string;
  kind: 'memory' | 'file' | 'genkit-memory' | 'genkit-file';
  folder?: string;
  options?: Record<string, unknown>;
  /**
   * `cloned`: all objects of a state are new each time, as in Genkit's runtime. `read`: the earlier part of a state is the frozen state that was
   * read, as in our runtime. Default: `shared`: the messages stay the same objects.
   */
  states?: 'shared' | 'cloned' | 'read';
  /** Whether a file store redacts with all rules and encrypts. Default: false. */
  isPrivate?: boolean;
}

/** The requests of the parent; each is answered with one number. */
export type ContenderRequest =
  /**
   * Plays the next turn of the workload; returns its ms. `cold`: on a store object with empty caches. `looks`: accesses the state that was read,
   * for a store that copies it on first access. `watches`: returns the longest time that the save blocked the event loop instead, in ms.
   */
  | { do: 'turn'; resumeBy?: 'sessionId' | 'snapshotId'; cold?: boolean; looks?: boolean; watches?: boolean }
  /** Looks the session up by its id; returns the ms. */
  | { do: 'lookup' }
  /** Saves a pending snapshot after the last turn; returns 0. */
  | { do: 'pend'; snapshotId: string }
  /** Watches a pending snapshot; returns 0 when the watch certainly runs. */
  | { do: 'watch'; snapshotId: string }
  /** Aborts a snapshot; returns the start time of the abort, by the machine's clock. */
  | { do: 'abort'; snapshotId: string }
  /** Returns the time at which the watcher was notified of the abort, by the same clock. */
  | { do: 'heard' }
  /** Saves the first turn of the other sessions with these numbers; returns 0. */
  | { do: 'crowd'; from: number; to: number }
  /** Returns the bytes of heap that the store has allocated since the process was ready. */
  | { do: 'heap' }
  /** Returns the bytes of new information so far. */
  | { do: 'information' }
  /** Returns the characters that each privacy rule has searched so far. */
  | { do: 'searched' };

const spec = JSON.parse(process.argv[2]!) as ContenderSpec;
const workload = new Workload();
let searched = 0;
let store = open();
let leafId: string | undefined;
const heapBefore = heapInUse();

function open(): Store {
  const { kind, folder, options } = spec;
  switch (kind) {
    case 'memory':
      return new InMemorySessionStore<WorkloadState>(options);
    case 'file':
      return spec.isPrivate ? openPrivate() : new FileSessionStore<WorkloadState>(folder!, options);
    case 'genkit-memory':
      return new GenkitInMemoryStore<WorkloadState>(options);
    case 'genkit-file':
      return new GenkitFileStore<WorkloadState>(folder!, options);
  }
}

function openPrivate(): Store {
  const secret = randomBytes(32);
  const encryption = envelope({ keys: localKeys(secret) });
  const [first, ...rules] = piiRules();
  const counted: PrivacyRule = {
    ...first!,
    find: (text, options) => {
      searched += text.length;
      return first!.find(text, options);
    },
  };
  const files = new FileSessionStore<WorkloadState>(spec.folder!, { ...spec.options, encryption });
  return redacting(files, { rules: [counted, ...rules], secret });
}

/** The state of the next turn, with the messages and artifacts of the state that was read. */
function onTopOf(
  read: SessionState<WorkloadState> | undefined,
  next: SessionState<WorkloadState>,
): SessionState<WorkloadState> {
  const { messages = [], artifacts = [] } = read ?? {};
  return {
    ...next,
    messages: [...messages, ...next.messages!.slice(messages.length)],
    artifacts: [...artifacts, ...next.artifacts!.slice(artifacts.length)],
  };
}

async function turn({ resumeBy, cold, looks, watches }: ContenderRequest & { do: 'turn' }): Promise<number> {
  const shared = workload.next();
  const state = spec.states === 'cloned' ? structuredClone(shared) : shared;
  const newId = randomUUID();
  if (cold) store = open();
  let blocked = 0;
  const ms = await timed(async () => {
    const byId = resumeBy === 'snapshotId' && leafId !== undefined;
    const lookup = byId ? { snapshotId: leafId! } : { sessionId: workload.sessionId };
    const leaf = await store.getSnapshot({ ...lookup, ...(spec.states === 'read' && { frozen: true }) });
    if (looks && leaf?.state?.messages?.length === 0) throw new Error('invariant: there are messages');
    const next = spec.states === 'read' ? onTopOf(leaf?.state, state) : state;
    const save = () => store.saveSnapshot(newId, () => completedSnapshot(next, leaf?.snapshotId));
    if (watches) blocked = await longestBlock(save);
    else await save();
  });
  leafId = newId;
  return watches ? blocked : ms;
}

/** The longest time without another task of the event loop while `work` ran, in ms, including garbage collection. */
async function longestBlock(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isRunning = true;
  let last = performance.now();
  const look = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (isRunning) setImmediate(look);
  };
  setImmediate(look);
  await work();
  isRunning = false;
  look();
  return longest;
}

/** The machine's clock in ms, the same for all processes. */
function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

async function pend(snapshotId: string): Promise<number> {
  const state = workload.state();
  await store.saveSnapshot(snapshotId, () => ({ ...completedSnapshot(state, leafId), status: 'pending' }));
  return 0;
}

let heard: Promise<number> | undefined;

async function watch(snapshotId: string): Promise<number> {
  let end: (() => void) | void;
  let onPending = (): void => {};
  const running = new Promise<void>((resolve) => (onPending = resolve));
  heard = new Promise((resolve) => {
    end = store.onSnapshotStateChange!(snapshotId, ({ status }) => {
      if (status !== 'aborted') return onPending();
      const now = clock();
      end?.();
      resolve(now);
    });
  });
  // Genkit's in-memory store sends no first notification, and its watch runs at once.
  if (spec.kind !== 'genkit-memory') await running;
  return 0;
}

async function abort(snapshotId: string): Promise<number> {
  const start = clock();
  await store.saveSnapshot(snapshotId, (current) => ({ ...current!, status: 'aborted' }));
  return start;
}

/** How many other sessions are saved at a time. */
const AT_A_TIME = 16;

async function crowd(from: number, to: number): Promise<number> {
  for (let i = from; i < to; i += AT_A_TIME) {
    const some = Array.from({ length: Math.min(AT_A_TIME, to - i) }, (_, k) => i + k);
    await Promise.all(
      some.map((seed) => {
        const other = new Workload({ sessionId: `other-${seed}`, seed });
        return store.saveSnapshot(randomUUID(), () => completedSnapshot(other.next(), undefined));
      }),
    );
  }
  return 0;
}

function heap(): number {
  // Without the memory of the generator, which has each byte of information once.
  return heapInUse() - heapBefore - workload.information;
}

async function answer(request: ContenderRequest): Promise<number> {
  switch (request.do) {
    case 'turn':
      return turn(request);
    case 'lookup':
      return timed(() => store.getSnapshot({ sessionId: workload.sessionId }));
    case 'pend':
      return pend(request.snapshotId);
    case 'watch':
      return watch(request.snapshotId);
    case 'abort':
      return abort(request.snapshotId);
    case 'heard':
      return heard!;
    case 'crowd':
      return crowd(request.from, request.to);
    case 'heap':
      return heap();
    case 'information':
      return workload.information;
    case 'searched':
      return searched;
  }
}

process.on('message', (request: ContenderRequest) => {
  answer(request).then(
    (value) => process.send!({ value }),
    (error: unknown) => process.send!({ error: String(error) }),
  );
});
process.send!({ value: 0 });
