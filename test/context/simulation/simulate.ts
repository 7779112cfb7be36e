import { AsyncLocalStorage } from 'node:async_hooks';
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
import { hashOf, marksOf, providerFaults, violations } from './checker.ts';

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

type Store = InMemorySessionStore;
type AgentOf = ReturnType<typeof defineProcess>['agent'];

/** Everything about one session that its processes share. */
interface World {
  readonly random: Random;
  readonly store: Store;
  readonly sessionId: string;
  readonly strategies: () => HistoryStrategy[];
  readonly maxTokens: number;
  readonly result: { windows: number; summaries: number; dropped: number; kills: number; violations: string[] };
  marks: number;
}

/** A running turn. One that was aborted may still call the model when the next one runs. */
interface Turn {
  /** The messages that it continues. */
  readonly earlier: readonly MessageData[];
  readonly readyTo: number;
  /** The request that the model got, until its report comes. */
  request?: GenerateRequest;
}

const running = new AsyncLocalStorage<Turn>();

/** Plays random sessions, each served by two processes, and checks every window that a model was sent. */
export async function simulate(seed: number, sessions: number): Promise<SimulationResult> {
  const result: World['result'] = { windows: 0, summaries: 0, dropped: 0, kills: 0, violations: [] };
  for (let n = 0; n < sessions && result.violations.length === 0; n++) {
    const random = new Random(seed * 100_003 + n);
    const before = result.violations.length;
    await playSession(random, `session-${n}`, result);
    if (result.violations.length > before) result.violations.unshift(`seed ${seed}, session ${n}:`);
  }
  return result;
}

async function playSession(random: Random, sessionId: string, result: World['result']): Promise<void> {
  const everyTurns = 1 + random.below(4);
  const overlapTurns = random.below(3);
  const keep = 1 + random.below(5);
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
        summarize({ everyTurns, overlapTurns, maxTokens: 100_000, timeoutMs: 5, summarizer: summarizerOf(world) }),
      ),
    maxTokens: 1_000_000,
    result,
    marks: 0,
  };
  const processes = [defineProcess(world), defineProcess(world)];
  const completed: string[] = [];
  let settledTurns = 0;
  const steps = 8 + random.below(14);
  for (let step = 0; step < steps; step++) {
    const at = random.below(2);
    if (random.below(12) === 0) {
      processes[at]!.kill();
      processes[at] = defineProcess(world);
      result.kills++;
      settledTurns = 0;
    }
    if (random.below(25) === 0) {
      await world.store.writeRecord({ sessionId, kind: COMPACTION_KIND, key: CHAIN_KEY, value: undefined });
      settledTurns = 0;
    }
    const from = completed.length > 0 && random.below(5) === 0 ? random.pick(completed) : undefined;
    const parent = await world.store.getSnapshot(from ? { snapshotId: from } : { sessionId });
    const base = await resumable(world.store, parent);
    const earlier = base?.state?.messages ?? [];
    const ready = settledTurns >= 2 ? await readyTo(world, earlier) : 0;
    const { agent } = processes[at]!;
    const saved = await running.run({ earlier, readyTo: ready }, () => turn(world, agent, base));
    if (saved) completed.push(saved);
    if (random.below(4) === 0) settledTurns = 0;
    else {
      for (const process of processes) await process.window.settled();
      settledTurns++;
    }
  }
  for (const process of processes) await process.window.settled();
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
    const kind = world.random.below(8);
    if (kind === 0) throw new Error('The summarizer is down.');
    if (kind === 1) return '';
    if (kind === 2) return new Promise<never>(() => {});
    if (kind === 3) await new Promise((resolve) => setImmediate(resolve));
    return [...new Set(marksOf(text))].map((mark) => `[id:${mark}]`).join(' ');
  };
}

/** One turn: with tools, an interrupt, a failure or an abort. Answers the snapshot when it is completed. */
async function turn(world: World, agent: AgentOf, base: SessionSnapshot | undefined): Promise<string | undefined> {
  const { random, sessionId } = world;
  const chat = agent.chat(base ? { snapshotId: base.snapshotId } : { sessionId });
  const abort = new AbortController();
  const kind = random.below(10);
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
    onReport: (report) => check(world, report),
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
    context: window,
  });
  return { agent, window, kill: () => gate.close(1 + random.below(4)) };
}

/** Checks the window of the last call. */
function check({ result }: World, report: ContextReport): void {
  const { earlier, readyTo, request } = running.getStore()!;
  result.windows++;
  if (report.summary) result.summaries++;
  if (report.dropped.length > 0) result.dropped++;
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
      result.violations.push(...providerFaults(request.messages).map((fault) => `a provider refuses it: ${fault}`));
      const isAborted = JSON.stringify(request.messages.at(-1)).includes('ABORT');
      if (isAborted) await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      return { message: { role: 'model', content: reply() }, finishReason: 'stop' };
    },
  );

  function reply(): Part[] {
    const kind = random.below(14);
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
  const proxy = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (left-- > 0) return (member as (...a: unknown[]) => unknown).apply(target, args);
        return new Promise<never>(() => {});
      };
    },
  });
  return { store: proxy, close: (calls: number) => (left = calls) };
}
