/** Jobs a second, and the time until a memory can be found, with many users at once. */
import { randomUUID } from 'node:crypto';
import { Firestore } from '@google-cloud/firestore';
import { genkit } from 'genkitx-agents';
import { FirestoreMemoryStore } from 'genkitx-agents/google-cloud';
import {
  FileMemoryStore,
  InMemoryMemoryStore,
  memoryManager,
  memoryScope,
  type MemoryDraft,
  type MemoryJob,
  type MemoryStore,
} from 'genkitx-agents/memory';
import { useEmulator } from '../firestore.ts';
import { makeFolder, single, spread } from '../measure.ts';
import type { Report } from '../report.ts';
import { makeCorpus } from './corpus.ts';

const APP = 'bench';
const CALLERS = 50;
const USERS = 100;
/** The number of jobs that a manager runs at once. */
const WORKERS = 4;

/** A sentence of one of the users, to learn. */
interface Said {
  readonly userId: string;
  readonly id: string;
  readonly text: string;
}

/** Resolves when the sentence was learned and found. */
type Learn = (said: Said) => Promise<void>;

/** @param report Gets the figures. */
export async function benchMemoryJobs(report: Report): Promise<void> {
  await benchPlace(report, 'in memory', 2_000, () => new InMemoryMemoryStore());
  await benchPlace(report, 'files', 500, () => new FileMemoryStore(makeFolder()));
  await useEmulator();
  const db = new Firestore({ projectId: 'demo-memory-jobs' });
  try {
    let opened = 0;
    await benchPlace(report, 'Firestore', 200, () => new FirestoreMemoryStore({ db, collection: `jobs${opened++}` }));
  } finally {
    await db.terminate();
  }
}

async function benchPlace(report: Report, where: string, jobs: number, open: () => MemoryStore): Promise<void> {
  report.start(`memory jobs, ${where}`, 2 * jobs);
  const corpus = makeCorpus(1, USERS);
  const all = Array.from({ length: jobs }, (_, i): Said => {
    const { text } = corpus[i % USERS]!.messages[Math.floor(i / USERS)]!;
    return { userId: `user${i % USERS}`, id: `${i}`, text };
  });
  const bare = await play(all, report, learnBare(open()));
  const { learn, close } = learnWithManager(open());
  const learned = await play(all, report, learn);
  await close();
  const line = { peer: 'floor: the store alone' };
  report.add(
    {
      name: `memory jobs a second, ${CALLERS} callers, ${where}`,
      unit: '1/s',
      ours: single((1000 * jobs) / learned.ms),
      theirs: single((1000 * jobs) / bare.ms),
      ...line,
    },
    {
      name: `from ingest until a memory can be found, ${CALLERS} callers, ${where}`,
      unit: 'ms',
      ours: spread(learned.times),
      theirs: spread(bare.times),
      ...line,
    },
  );
}

/** Callers that each learn one sentence after the other. */
async function play(all: readonly Said[], report: Report, learn: Learn) {
  const times: number[] = [];
  const left = all.values();
  const start = performance.now();
  const call = async (): Promise<void> => {
    for (const said of left) {
      const begun = performance.now();
      await learn(said);
      times.push(performance.now() - begun);
      report.progress(1);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  return { ms: performance.now() - start, times };
}

/** Enqueues, waits for the worker of this process, and searches. The model, a function, answers at once. */
function learnWithManager(store: MemoryStore): { learn: Learn; close: () => Promise<void> } {
  const waiting = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  const memory = memoryManager(genkit({}), {
    store,
    appName: APP,
    extract: ({ messages }) => messages.map(({ content }) => content[0]!.text!),
    onReport: ({ type, sourceId, error }) => {
      const { resolve, reject } = waiting.get(sourceId)!;
      if (type === 'committed') resolve();
      else reject(new Error(`A job ended as ${type}. ${error ?? ''}`));
    },
  });
  const learn: Learn = async ({ userId, id, text }) => {
    const scope = memoryScope({ scope: 'user', appName: APP, userId });
    const committed = new Promise<void>((resolve, reject) => waiting.set(id, { resolve, reject }));
    await memory.ingest({ scope, source: { id }, messages: [{ role: 'user', content: [{ text }] }] });
    await committed;
    const { memories } = await memory.search({ scope, query: text, deadlineMs: 60_000 });
    if (!memories.some((found) => found.memory.text === text)) throw new Error(`'${text}' was not found.`);
  };
  return { learn, close: () => memory.close() };
}

/** The store's part: adds, claims and commits jobs with one memory each, and reads the memory. */
function learnBare(store: MemoryStore): Learn {
  const waiting = new Map<string, () => void>();
  let [workers, isWanted] = [0, false];
  const work = async (): Promise<void> => {
    workers++;
    const owner = randomUUID();
    while (isWanted) {
      isWanted = false;
      for (let job; (job = await store.claimJob({ owner, leaseMs: 60_000 }));) {
        await store.commit(job.scope, [{ op: 'put', memory: memoryOf(job) }], { job: { id: job.id, owner } });
        waiting.get(job.id)!();
      }
    }
    workers--;
  };
  return async ({ userId, id, text }) => {
    const scope = { scope: 'user', appName: APP, userId } as const;
    const committed = new Promise<void>((resolve) => waiting.set(id, resolve));
    await store.addJob({ id, scope, sourceId: id, input: { text } }, { maxJobs: 1_000 });
    isWanted = true;
    if (workers < WORKERS) void work();
    await committed;
    await store.get(scope, [id]);
  };
}

function memoryOf({ id, input }: MemoryJob): MemoryDraft {
  const at = new Date().toISOString();
  const { text } = input as { text: string };
  const source = { id, type: 'implicit', trust: 0.6, statement: text, sha256: '', at } as const;
  const facts = { topics: [], importance: 0.5, confidence: 0.6, validFrom: at, sources: [source] };
  return { id, kind: 'declarative', text, ...facts };
}
