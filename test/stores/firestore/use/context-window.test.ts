/** The cost of the summaries of a context window on Firestore, counted on the wire and compared with the same agent without a window. */
import { randomUUID } from 'node:crypto';
import type { Firestore } from '@google-cloud/firestore';
import { defineAgent, genkit } from 'genkitx-agents';
import { contextWindow, lastTurns, summarize } from 'genkitx-agents/context';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { scriptedModel } from '../../../support/scripted-model.ts';
import { openDatabase } from '../support/database.ts';
import { trafficOf, trafficSoFar } from '../support/transport.ts';

const EVERY_TURNS = 4;

let db: Firestore;
beforeAll(async () => {
  trafficSoFar();
  db = openDatabase();
  // A client's first request sets up its connection.
  await db.doc('warm/up').get();
});

/** An agent like in a separate process: it shares only the database with the others. */
function openProcess(collection: string, hasWindow: boolean) {
  const ai = genkit();
  const { name: model } = scriptedModel(ai, { otherwise: 'Fine.' });
  const window = contextWindow({
    history: [summarize({ everyTurns: EVERY_TURNS, summarizer: async () => 'They talked.' }), lastTurns(10)],
  });
  const store = new FirestoreSessionStore({ db, collection });
  const agent = defineAgent(ai, { name: 'talker', model, store, ...(hasWindow && { context: window }) });
  return { agent, window };
}

type Process = ReturnType<typeof openProcess>;

/** The traffic of a session with a window, minus that of the same session without a window. */
class Sessions {
  readonly #collections = [randomUUID(), randomUUID()] as const;

  open(): [Process, Process] {
    return [openProcess(this.#collections[0], true), openProcess(this.#collections[1], false)];
  }

  async extra(processes: [Process, Process], work: (of: Process) => Promise<unknown>) {
    const [withWindow, without] = [
      await trafficOf(() => work(processes[0])),
      await trafficOf(() => work(processes[1])),
    ];
    const { reads, writes, deletes, rpcs } = withWindow;
    return {
      reads: reads - without.reads,
      writes: writes - without.writes,
      deletes: deletes - without.deletes,
      rpcs: rpcs - without.rpcs,
    };
  }
}

const NOTHING = { reads: 0, writes: 0, deletes: 0, rpcs: 0 };
const SESSION = { sessionId: 'chat' };
/** A turn and its background work. */
const turn = async ({ agent, window }: Process) => {
  await agent.chat(SESSION).send('Hello');
  await window.settled();
};

describe('a context window on Firestore', () => {
  let sessions: Sessions;
  let first: [Process, Process];
  /** Plays turns in both sessions. */
  const play = async (processes: [Process, Process], turns: number) => {
    for (let i = 0; i < turns; i++) for (const process of processes) await turn(process);
  };
  beforeEach(async () => {
    sessions = new Sessions();
    first = sessions.open();
    await play(first, 1);
  });

  it('costs nothing in a turn whose process knows the summaries', async () => {
    expect(await sessions.extra(first, turn)).toEqual(NOTHING);
  });

  it('costs another process a read, in the request that reads the session', async () => {
    expect(await sessions.extra(sessions.open(), turn)).toEqual({ ...NOTHING, reads: 1 });
    await play(first, 2);
    const others = sessions.open();
    expect(await sessions.extra(others, turn)).toEqual({ ...NOTHING, reads: 1 });
    expect(await sessions.extra(others, turn)).toEqual(NOTHING);
  });

  it('costs another process a read and a request if the call names the snapshot, because that does not name the session', async () => {
    const ids = await Promise.all(first.map(async ({ agent }) => (await agent.chat(SESSION).send('And?')).snapshotId!));
    const others = sessions.open();
    const resume = ({ agent }: Process) =>
      agent.chat({ snapshotId: ids[agent === others[0].agent ? 0 : 1]! }).send('Hi');
    expect(await sessions.extra(others, resume)).toEqual({ ...NOTHING, reads: 1, rpcs: 1 });
  });

  it('costs a read and two writes when a summary is made, and a read more the first time', async () => {
    await play(first, EVERY_TURNS - 2);
    expect(await sessions.extra(first, turn)).toEqual({ reads: 2, writes: 2, deletes: 0, rpcs: 4 });
    await play(first, EVERY_TURNS - 1);
    expect(await sessions.extra(first, turn)).toEqual({ reads: 1, writes: 2, deletes: 0, rpcs: 3 });
  });
});
