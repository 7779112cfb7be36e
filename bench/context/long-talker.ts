/** An agent in a long session of the standard workload. */
import type { GenerateRequest } from 'genkit';
import { InMemorySessionStore } from 'genkitx-agents';
import {
  clearToolOutputs,
  lastTurns,
  summarize,
  tokenBudget,
  type ContextWindow,
  type HistoryStrategy,
} from 'genkitx-agents/context';
import { completedSnapshot, Workload } from '../workload.ts';
import { scriptedTurns } from './conversation.ts';
import { genkitTalker, SUMMARIZER } from './genkit-talker.ts';

/** The windows that are measured. */
export const WINDOWS = {
  'summarize and lastTurns': () => [summarize({ model: SUMMARIZER }), lastTurns(10)],
  'clearToolOutputs and tokenBudget': () => [clearToolOutputs({ keepTurns: 3 }), tokenBudget(4_000)],
} satisfies Record<string, () => HistoryStrategy[]>;

export type WindowName = keyof typeof WINDOWS;

export interface LongSession {
  /** The initial length of the session. */
  readonly turns: number;
  /** The largest number of added turns. */
  readonly added: number;
}

/** @param context Default: no window. */
export async function longTalker(
  { turns, added }: LongSession,
  context: ContextWindow | undefined,
  onRequest?: (request: GenerateRequest) => void,
): Promise<{ send(): Promise<void> }> {
  const workload = new Workload();
  const store = new InMemorySessionStore();
  for (let turn = 1; turn < turns; turn++) workload.next();
  const state = workload.next();
  await store.saveSnapshot('start', () => completedSnapshot(state, undefined));
  const from = { snapshotId: 'start' };
  const talker = genkitTalker({ store, from, ...(onRequest && { onRequest }), ...(context && { context }) });
  const script = scriptedTurns(turns + added).slice(turns);
  return { send: () => talker.send(script.shift()!) };
}
