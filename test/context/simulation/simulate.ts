import { AsyncLocalStorage } from 'node:async_hooks';
import { mock } from 'node:test';
import { z, type GenerateRequest, type Genkit, type MessageData, type Part } from 'genkit';
import { genkit, type SessionSnapshot } from 'genkit/beta';
import { contextWindow } from '../../../src/context/window.ts';
import { clearToolOutputs } from '../../../src/context/history/clear-tool-outputs.ts';
import { lastTurns } from '../../../src/context/history/last-turns.ts';
import { tokenBudget } from '../../../src/context/history/token-budget.ts';
import { COMPACTION_KIND, CHAIN_KEY, parseChain } from '../../../src/context/compaction/record.ts';
import { summarize } from '../../../src/context/compaction/summarize.ts';
import type { ContextReport, HistoryStrategy } from '../../../src/context/types.ts';
import { defineAgent } from '../../../src/agent/define/define-agent.ts';
import { InMemorySessionStore } from '../../../stores/in-memory/in-memory-session-store.ts';
import { Random } from '../../support/random.ts';
import { brokenRules } from '../support/provider-rules.ts';
import { hashOf, marksOf, violations } from './checker.ts';

/** What a run of the simulation found. */
export interface SimulationResult {
  /** Windows that were checked. */
  readonly windows: number;
  /** Of these, windows with a summary; with dropped messages. */
  readonly summaries: number;
  readonly dropped: number;
  readonly kills: number;
  readonly violations: readonly string[];
}

/** A session of the simulation needs far fewer summaries. */
const MOST_ANSWERS = 500;

type Store = InMemorySessionStore;
type Process = ReturnType<typeof defineProcess>;

/** Everything about one session that its processes share. */
interface World {
  readonly random: Random;
  readonly store: Store;
  readonly sessionId: string;
  readonly strategies: () => HistoryStrategy[];
  readonly maxTokens: number;
  readonly result: { windows: number; summaries: number; dropped: number; kills: number; violations: string[] };
  marks: number;
  /** Whether nothing fails from now on. */
  isCalm: boolean;
  /** Summaries that the summarizer has answered. */
  answers: number;
  /** Messages that the last window dropped. */
  dropped: number;
  /** Times that the records were deleted by hand. */
  deletions: number;
}

/** A running turn. One that was aborted may still call the model when the next one runs. */
interface Turn {
  /** The messages that it continues. */
  readonly earlier: readonly MessageData[];
  readonly readyTo: number;
  /** Those before the turn. */
  readonly deletions: number;
  /** The request that the model got, until its report comes. */
  request?: GenerateRequest;
}

const running = new AsyncLocalStorage<Turn>();
/** All turns that began, so that none outlives the simulation. */
const begun: Promise<unknown>[] = [];
/** How long a call of a dead process hangs, in ms. */
const STORE_TIMEOUT_MS = 1_000;

/** Plays random sessions, each served by two processes, and checks every window that a model was sent. */
export async function simulate(seed: number, sessions: number): Promise<SimulationResult> {
  const result: World['result'] = { windows: 0, summaries: 0, dropped: 0, kills: 0, violations: [] };
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  try {
    for (let n = 0; n < sessions && result.violations.length === 0; n++) {
      await playSession(new Random(seed * 100_003 + n), `session-${n}`, result);
      if (result.violations.length > 0) result.violations.unshift(`seed ${seed}, session ${n}:`);
    }
  } finally {
    // The turns of dead processes end with the time limit of their store's calls.
    await Promise.all(begun.splice(0));
    mock.timers.reset();
  }
  return result;
}

async function playSession(random: Random, sessionId: string, result: World['result']): Promise<void> {
  const everyTurns = 1 + random.below(4);
  const overlapTurns = random.below(3);
  const keep = 1 + random.below(5);
  // Some read a long backlog by several calls.
  const maxInputTokens = random.pick([30, 32_000]);
  const strategies = random.pick<(summary: HistoryStrategy) => HistoryStrategy[]>([
    (summary) => [summary],
    (summary) => [summary, lastTurns(keep)],
    (summary) => [clearToolOutputs({ keepTurns: keep }), summary, lastTurns(keep + 2)],
    (summary) => [summary, tokenBudget(150 + 50 * keep)],
    (summary) => [clearToolOutputs({ keepTurns: 1 }), summary, lastTurns(keep), tokenBudget(400)],
  ]);
  const world: World = {
    random,
    store: new InMemorySessionStore(),
    sessionId,
    strategies: () =>
      strategies(
        summarize({
          everyTurns,
          overlapTurns,
          maxInputTokens,
          maxTokens: 100_000,
          timeoutMs: 5,
          summarizer: summarizerOf(world),
        }),
      ),
    maxTokens: 1_000_000,
    result,
    marks: 0,
    isCalm: false,
    answers: 0,
    dropped: 0,
    deletions: 0,
  };
  const processes = [defineProcess(world), defineProcess(world)];
  const completed: string[] = [];
  let settledTurns = 0;
  const steps = 8 + random.below(14);
  for (let step = 0; step < steps; step++) {
    // Leases of the dead end, and so do the pauses after a failure.
    mock.timers.tick(random.pick([0, 0, 1, 12_000, 60_000]));
    const at = random.below(2);
    const isKilled = random.below(12) === 0;
    if (isKilled) processes[at]!.kill();
    if (random.below(25) === 0) {
      await world.store.writeRecord({ sessionId, kind: COMPACTION_KIND, key: CHAIN_KEY, value: undefined });
      world.deletions++;
      settledTurns = 0;
    }
    const from = completed.length > 0 && random.below(5) === 0 ? random.pick(completed) : undefined;
    const saved = await playTurn(world, processes[at]!, { from, isSettled: settledTurns >= 2 });
    if (saved) completed.push(saved);
    if (isKilled) {
      processes[at] = defineProcess(world);
      result.kills++;
      settledTurns = 0;
    }
    if (random.below(4) === 0) settledTurns = 0;
    else {
      await settled(processes);
      settledTurns++;
    }
  }
  await settled(processes);
  await playCalmly(world, processes, everyTurns);
}

/** Turns in which nothing fails: when a summary is due it is made, and then nothing is dropped any more. */
async function playCalmly(world: World, processes: readonly Process[], everyTurns: number): Promise<void> {
  world.isCalm = true;
  mock.timers.tick(3_600_000);
  for (let turns = 0; turns <= everyTurns; turns++) {
    const { answers } = world;
    await playTurn(world, processes[0]!, { isSettled: true });
    await settled(processes);
    if (world.answers === answers) continue;
    await playTurn(world, processes[1]!, { isSettled: true });
    await settled(processes);
    if (world.dropped > 0) world.result.violations.push(`after a summary ${world.dropped} messages are still dropped`);
    return;
  }
  world.result.violations.push(`${everyTurns + 1} turns without a summary, although nothing failed`);
}

async function settled(processes: readonly Process[]): Promise<void> {
  for (const { window } of processes) await window.settled();
}

/** A turn that continues the session, or an older snapshot of it. Answers the snapshot when it is completed. */
async function playTurn(
  world: World,
  process: Process,
  { from, isSettled }: { from?: string | undefined; isSettled: boolean },
): Promise<string | undefined> {
  const parent = await world.store.getSnapshot(from ? { snapshotId: from } : { sessionId: world.sessionId });
  const base = await resumable(world.store, parent);
  const earlier = base?.state?.messages ?? [];
  // A process that goes on where it was, on an old branch, reads no records; it learns of new ones at its next summary.
  const ready = isSettled && !from ? await readyTo(world, earlier) : 0;
  return running.run({ earlier, readyTo: ready, deletions: world.deletions }, () => {
    const playing = turn(world, process, base);
    begun.push(playing);
    return Promise.race([playing, process.died]);
  });
}

/** The snapshot that a turn continues: the nearest completed one. */
async function resumable(store: Store, snapshot: SessionSnapshot | undefined): Promise<SessionSnapshot | undefined> {
  let at = snapshot;
  while (at && at.status !== 'completed')
    at = at.parentId ? await store.getSnapshot({ snapshotId: at.parentId }) : undefined;
  return at;
}

/** Up to which position a summary in the store covers the messages that the next turn continues. */
async function readyTo({ store, sessionId }: World, earlier: readonly MessageData[]): Promise<number> {
  const [record] = await store.readRecords({ sessionId, kind: COMPACTION_KIND, keys: [CHAIN_KEY] });
  const covers = parseChain(record?.value)
    .records.filter(({ to, sha256 }) => to <= earlier.length && hashOf(earlier.slice(0, to)) === sha256)
    .map(({ to }) => to);
  return Math.max(0, ...covers);
}

/** Answers the marks of all that it read: sometimes late, sometimes nothing. */
function summarizerOf(world: World) {
  return async ({ text }: { text: string }): Promise<string> => {
    const kind = world.isCalm ? 7 : world.random.below(8);
    if (kind === 0) throw new Error('The summarizer is down.');
    if (kind === 1) return '';
    if (kind === 2) return new Promise<never>(() => {});
    if (kind === 3) await new Promise((resolve) => setImmediate(resolve));
    if (++world.answers > MOST_ANSWERS) {
      world.result.violations.push('a session is summarized without end');
      throw new Error('The session is summarized without end.');
    }
    return [...new Set(marksOf(text))].map((mark) => `[id:${mark}]`).join(' ');
  };
}

/** One turn: with tools, an interrupt, a failure or an abort. Answers the snapshot when it is completed. */
async function turn(world: World, { agent }: Process, base: SessionSnapshot | undefined): Promise<string | undefined> {
  const { random, sessionId } = world;
  const chat = agent.chat(base ? { snapshotId: base.snapshotId } : { sessionId });
  const abort = new AbortController();
  const kind = world.isCalm ? 9 : random.below(10);
  const last = base?.state?.messages?.at(-1);
  const waiting = last?.role === 'model' ? last.content.filter((part) => part.metadata?.['interrupt']) : [];
  try {
    const input =
      waiting.length > 0
        ? {
            resume: {
              respond: waiting.map(({ toolRequest }) => ({
                toolResponse: { name: toolRequest!.name, ref: toolRequest!.ref, output: mark(world, 'r') },
              })),
            },
          }
        : {
            message: { role: 'user' as const, content: [{ text: `${mark(world, 'u')} ${kind === 0 ? 'ABORT' : ''}` }] },
          };
    const sent = chat.send(input, { abortSignal: abort.signal });
    if (kind === 0) setImmediate(() => abort.abort());
    const response = await sent;
    return response.finishReason === 'stop' || response.finishReason === 'interrupted'
      ? response.snapshotId
      : undefined;
  } catch {
    return undefined;
  }
}

function mark(world: World, letter: string): string {
  return `[id:${letter}${world.marks++}]`;
}

/** One process that serves the session. */
function defineProcess(world: World) {
  const { random } = world;
  const gate = gated(world.store);
  const ai = genkit({});
  const window = contextWindow({
    maxTokens: world.maxTokens,
    history: world.strategies(),
    // A process that is dead calls no model; this one does when the time limit of its store's calls is up.
    onReport: (report) => {
      if (gate.isOpen()) check(world, report);
    },
  });
  const lookUp = ai.defineTool(
    { name: 'lookUp', description: 'x', inputSchema: z.any(), outputSchema: z.any() },
    async () => mark(world, 't'),
  );
  const approve = ai.defineTool(
    { name: 'approve', description: 'x', inputSchema: z.any(), outputSchema: z.any() },
    async (_input, { interrupt }) => interrupt({ why: 'ask' }),
  );
  defineModel(ai, world);
  const agent = defineAgent(ai, {
    name: 'simulated',
    model: 'simulated',
    system: 'Be a test.',
    tools: [lookUp, approve],
    store: gate.store,
    storeTimeoutMs: STORE_TIMEOUT_MS,
    context: window,
  });
  return { agent, window, died: gate.closed, kill: () => gate.close(random.below(8)) };
}

/** Checks the window of the last call. */
function check(world: World, report: ContextReport): void {
  const { result, deletions } = world;
  const turn = running.getStore()!;
  const { earlier, request } = turn;
  // A turn that was aborted may go on while the record that it began with is deleted.
  const readyTo = turn.deletions === deletions ? turn.readyTo : 0;
  result.windows++;
  if (report.summary) result.summaries++;
  if (report.dropped.length > 0) result.dropped++;
  world.dropped = report.dropped.reduce((sum, [start, end]) => sum + end - start, 0);
  const found = violations({ earlier, request: request!, report, readyTo });
  result.violations.push(...found);
}

/** A model with a random answer. */
function defineModel(ai: Genkit, world: World): void {
  const { random, result } = world;
  ai.defineModel(
    { name: 'simulated', supports: { multiturn: true, tools: true, systemRole: true } },
    async (request) => {
      running.getStore()!.request = request;
      result.violations.push(...brokenRules(request.messages).map((fault) => `a provider refuses it: ${fault}`));
      const isAborted = JSON.stringify(request.messages.at(-1)).includes('ABORT');
      if (isAborted) await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      return { message: { role: 'model', content: reply() }, finishReason: 'stop' };
    },
  );

  function reply(): Part[] {
    const kind = world.isCalm ? 13 : random.below(14);
    if (kind === 0) throw new Error('The model is down.');
    const text = { text: mark(world, 'a') };
    if (kind > 4) return [text];
    const name = kind === 1 ? 'approve' : 'lookUp';
    const calls = Array.from({ length: 1 + random.below(3) }, (_, i) => ({
      toolRequest: { name, ref: `${world.marks}-${i}`, input: { of: mark(world, 'i') } },
    }));
    return [text, ...calls];
  }
}

/** The store of a process that dies: after some more calls nothing that it does has an effect. */
function gated(store: Store) {
  let left = Infinity;
  let noteClosed = (): void => {};
  const closed = new Promise<undefined>((resolve) => (noteClosed = () => resolve(undefined)));
  const proxy = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (left-- > 0) return (member as (...a: unknown[]) => unknown).apply(target, args);
        noteClosed();
        return new Promise<never>(() => {});
      };
    },
  });
  return { store: proxy, closed, close: (calls: number) => (left = calls), isOpen: () => left > 0 };
}
