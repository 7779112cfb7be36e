/** The cost of a window's summaries on Firestore: the traffic of a session with a window, minus the traffic of the same session without it. */
import { randomUUID } from 'node:crypto';
import { Firestore } from '@google-cloud/firestore';
import { contextWindow } from 'genkitx-agents/context';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { trafficOf, type Traffic } from '../../test/stores/firestore/support/transport.ts';
import { useEmulator } from '../firestore.ts';
import { single } from '../measure.ts';
import type { Report } from '../report.ts';
import type { ScriptedTurn } from './conversation.ts';
import { genkitTalker } from './genkit-talker.ts';
import { WINDOWS } from './long-talker.ts';

/** `summarize` makes a summary after this many turns. */
const EVERY_TURNS = 5;
const TURN: ScriptedTurn = { question: 'Where is my order?', reply: 'On its way.' };
const UNITS = { reads: 'reads', writes: 'writes', rpcs: 'requests' } as const;

/** A turn, and its work in the background. */
type Play = () => Promise<void>;

export async function benchFirestoreCosts(report: Report): Promise<void> {
  await useEmulator();
  const db = new Firestore({ projectId: `demo-${randomUUID()}` });
  // A client's first request sets up its connection.
  await db.doc('warm/up').get();
  /** The agent of another process, which shares only the database. Each turn resumes the session by its id. */
  const open = (hasWindow: boolean): Play => {
    const store = new FirestoreSessionStore({ db, collection: hasWindow ? 'with' : 'without' });
    const context = contextWindow({ maxTokens: 8_000, history: WINDOWS['summarize and lastTurns']() });
    const from = { sessionId: 'chat' };
    const talker = genkitTalker({ store, from, isResuming: true, ...(hasWindow && { context }) });
    return async () => {
      await talker.send(TURN);
      await context.settled();
    };
  };
  const openBoth = () => [open(true), open(false)] as const;
  const first = openBoth();
  const extra = async ([withWindow, without]: readonly [Play, Play]) => {
    const [more, less] = [await trafficOf(withWindow), await trafficOf(without)];
    return (of: keyof Traffic) => more[of] - less[of];
  };
  const add = (what: string, cost: (of: keyof Traffic) => number, most: Partial<Traffic>) => {
    for (const [of, unit] of Object.entries(UNITS) as [keyof typeof UNITS, (typeof UNITS)[keyof typeof UNITS]][]) {
      const atMost = most[of];
      const goal = atMost !== undefined && { goal: { atMost } };
      report.add({ name: `Firestore, window, ${what}, extra`, unit, ours: single(cost(of)), ...goal });
    }
  };
  const playTurns = async (count: number) => {
    for (let turn = 0; turn < count; turn++) await extra(first);
  };
  await playTurns(1);
  add('turn whose process knows the records', await extra(first), { reads: 0, writes: 0, rpcs: 0 });
  add('turn of another process', await extra(openBoth()), { reads: 1, writes: 0, rpcs: 0 });
  // Three turns are over.
  await playTurns(EVERY_TURNS - 4);
  add('turn and the first summary', await extra(first), { reads: 1, writes: 2 });
  await playTurns(EVERY_TURNS - 1);
  add('turn and a later summary', await extra(first), { reads: 1, writes: 2 });
  await db.terminate();
}
