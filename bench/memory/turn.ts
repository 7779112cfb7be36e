/** The time of an agent's turn with a memory, compared with the same turn without it. */
import { Firestore } from '@google-cloud/firestore';
import { FileSessionStore, defineAgent, genkit, InMemorySessionStore, type SessionStore } from 'genkitx-agents';
import { FirestoreMemoryStore, FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import {
  FileMemoryStore,
  InMemoryMemoryStore,
  memoryManager,
  type AttachedMemory,
  type MemoryStore,
} from 'genkitx-agents/memory';
import { scriptedTurns } from '../context/conversation.ts';
import { useEmulator } from '../firestore.ts';
import { makeFolder, spread, timed } from '../measure.ts';
import type { Report } from '../report.ts';
import { completedSnapshot, Workload } from '../workload.ts';

/** Chats of this many turns, and turns at the end of a long session, like the other agent turns of the bench. */
const CHAT = 100;
const LONG = 1_000;
const MOST_OF_TURN = 1.1;
const SYSTEM = 'Help customers understand their order status.';
const SCOPE = { scope: 'user', appName: 'bench', userId: 'one' } as const;
const CONTEXT = { auth: { uid: SCOPE.userId } };
/** This user has no memories, so only the cost of the search remains. */
const UNKNOWN_USER = { auth: { uid: 'unknown' } };
/** 50 tokens. */
const REPLY = Array.from({ length: 50 }, (_, i) => `word${i}`).join(' ');

const WHO = ['bare', 'remembering', 'unknown', 'ready'] as const;
type Who = (typeof WHO)[number];

/** Sends the messages of a round, the same for all agents. */
type Play = (round: number) => Promise<void>;

/** The stores of sessions and memories. */
interface Place {
  readonly sessions: () => SessionStore;
  readonly memories: MemoryStore;
}

interface Contender {
  readonly who: string;
  readonly options: object;
  readonly context: object;
  readonly sessions: () => SessionStore;
}

interface Turns {
  readonly name: string;
  readonly warmUp: number;
  readonly rounds: number;
  /** The turns of a round. */
  readonly turns: number;
  readonly play: (contender: Contender) => Promise<Play>;
}

const script = scriptedTurns(LONG + CHAT).map(({ question }) => question);

const ai = genkit({});

const agentOf = ({ who, options, sessions }: Contender, name: string) =>
  defineAgent(ai, { name: `${who} ${name}`, model: 'fixed', system: SYSTEM, store: sessions(), ...options });

const chat = (where: string, warmUp: number, rounds: number): Turns => ({
  name: `agent turn over a ${CHAT}-turn chat${where}`,
  warmUp,
  rounds,
  turns: CHAT,
  play: async (contender) => {
    const agent = agentOf(contender, `in a chat${where}`);
    return async () => {
      const session = agent.chat({}, { context: contender.context });
      for (const question of script.slice(0, CHAT)) await session.send(question);
    };
  },
});

const longSession: Turns = {
  name: `agent turn after turn ${LONG}`,
  warmUp: 30,
  rounds: 50,
  turns: 1,
  play: async (contender) => {
    const store = contender.sessions();
    const agent = agentOf({ ...contender, sessions: () => store }, 'in a long session');
    const workload = new Workload();
    for (let turn = 1; turn < LONG; turn++) workload.next();
    const state = workload.next();
    await store.saveSnapshot('start', () => completedSnapshot(state, undefined));
    const session = agent.chat({ snapshotId: 'start' }, { context: contender.context });
    return async (round) => void (await session.send(script[LONG + round]!));
  },
};

/** @param fill Adds memories of the user `one` of the app `bench` to a store. */
export async function benchTurn(
  report: Report,
  { fill }: { fill: (store: MemoryStore) => Promise<void> },
): Promise<void> {
  ai.defineModel({ name: 'fixed', apiVersion: 'v2', supports: { systemRole: true } }, async () => ({
    message: { role: 'model', content: [{ text: REPLY }] },
    finishReason: 'stop',
  }));
  const inMemory = { sessions: () => new InMemorySessionStore(), memories: new InMemoryMemoryStore() };
  await benchPlace(report, [chat('', 10, 25), longSession], inMemory, fill);
  const files = {
    sessions: () => new FileSessionStore(makeFolder()),
    memories: new FileMemoryStore(makeFolder()),
  };
  await benchPlace(report, [chat(', files', 2, 9)], files, fill);
  await useEmulator();
  const db = new Firestore({ projectId: 'demo-memory-turns' });
  try {
    const sessions = () => new FirestoreSessionStore({ db });
    await benchPlace(
      report,
      [chat(', Firestore', 3, 11)],
      { sessions, memories: new FirestoreMemoryStore({ db }) },
      fill,
    );
  } finally {
    await db.terminate();
  }
}

async function benchPlace(
  report: Report,
  all: readonly Turns[],
  { sessions, memories }: Place,
  fill: (store: MemoryStore) => Promise<void>,
): Promise<void> {
  await fill(memories);
  // Turns search memories, but are never learned from.
  const generate = { everyTurns: 1_000_000 };
  const memory = memoryManager(ai, { store: memories, appName: 'bench', extract: () => [], worker: false, generate });
  const attached = memory.attach({ onReport: () => {} });
  const scope = memory.scopeFor('user', { context: CONTEXT });
  const { memories: found } = await memory.search({ scope, query: script[0]! });
  const texts = found.map((one) => one.memory.text);
  const ready = placing(memories, texts);
  const contenders = {
    bare: { who: 'bare', options: {}, context: CONTEXT, sessions },
    remembering: { who: 'remembering', options: { memory: attached }, context: CONTEXT, sessions },
    unknown: { who: 'unknown', options: { memory: attached }, context: UNKNOWN_USER, sessions },
    ready: { who: 'ready', options: { memory: ready }, context: CONTEXT, sessions },
  };
  for (const turns of all) await compare(report, turns, contenders);
  await memory.close();
}

/**
 * The floor: a memory that checks its store for changes, within a deadline and while the session is read, and places the same ten texts in each
 * turn. It does not search or learn.
 */
function placing(store: MemoryStore, texts: readonly string[]): AttachedMemory {
  const lines = { text: texts.join('\n') };
  const look = async () => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, 200)));
    await Promise.race([store.revision(SCOPE), late]);
    clearTimeout(timer);
    return { blocks: [], noteUse: () => {} };
  };
  const openTurn: AttachedMemory['openTurn'] = ({ started }) => ({
    tools: () => [],
    noteRequest: () => {},
    blocks: async () => [],
    sessionFacts: async () => undefined,
    place: async ({ request }) => {
      await (
        await started
      )?.finding;
      const last = request.messages.at(-1)!;
      const prompt = { ...last, content: [lines, ...last.content] };
      return { ...request, messages: [...request.messages.slice(0, -1), prompt] };
    },
  });
  const parts: Partial<AttachedMemory> = {
    prefetch: ({ text }) => ({ text, finding: look() }),
    openTurn,
    serve: () => {},
    afterTurn: () => undefined,
  };
  return parts as AttachedMemory;
}

async function compare(
  report: Report,
  { name, warmUp, rounds, turns, play }: Turns,
  contenders: Readonly<Record<Who, Contender>>,
): Promise<void> {
  report.start(`with memory: ${name}`, warmUp + rounds);
  const all = await Promise.all(
    WHO.map(async (who) => ({ who, play: await play(contenders[who]), times: [] as number[] })),
  );
  for (let round = 0; round < warmUp + rounds; round++) {
    // They take turns, so that all have the same load of the machine.
    for (const one of round % 2 === 0 ? all : all.toReversed()) {
      const ms = await timed(() => one.play(round));
      if (round >= warmUp) one.times.push(ms / turns);
    }
    report.progress(1);
  }
  const timesOf = (wanted: Who) => spread(all.find(({ who }) => who === wanted)!.times);
  const line = { unit: 'ms', theirs: timesOf('bare'), peer: 'the turn without' } as const;
  report.add({
    name: `with 600 memories, ${name}`,
    ours: timesOf('remembering'),
    ...line,
    goal: { atMostOfTheirs: MOST_OF_TURN },
  });
  report.add({ name: `with no memories of the user, ${name}`, ours: timesOf('unknown'), ...line });
  report.add({
    name: `floor: a look for news, and ten lines that are ready, ${name}`,
    ours: timesOf('ready'),
    ...line,
  });
}
