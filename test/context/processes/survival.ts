import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { FileSessionStore, InMemorySessionStore, UsageSum } from 'genkitx-agents';
import type { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { expect } from 'vitest';
import { CHAIN_KEY, COMPACTION_KIND, parseChain, parseRecords } from '../../../src/context/compaction/record.ts';
import { childScript } from '../../support/child-script.ts';
import { Random } from '../../support/random.ts';
import { scale, seed } from '../../support/scale.ts';
import type { TalkerPlace, TalkerSpec } from './talker-process.ts';
import type { TalkEvent } from './talker.ts';

export const TURNS = scale(40, 2_000);
export const TURNS_OF_A_PROCESS = scale(20, 100);

type Store = InMemorySessionStore | FileSessionStore | FirestoreSessionStore;

/** What happened in each process, one after the other. */
export type Lives = TalkEvent[][];

export const savedIn = (lives: Lives) => lives.flat().filter((event) => event === 'saved').length;

/** Has process after process go on with the conversation; each is killed in the middle of something after some turns. */
export async function talkAndDie(place: TalkerPlace, turns = TURNS): Promise<Lives> {
  const script = await childScript(new URL('talker-process.ts', import.meta.url));
  const random = new Random(seed);
  const lives: Lives = [];
  while (savedIn(lives) < turns) {
    const life: TalkEvent[] = [];
    lives.push(life);
    const spec: TalkerSpec = { place, seed: seed * 1_000 + lives.length, aheadMs: savedIn(lives) * 60_000 };
    const process = fork(script, [JSON.stringify(spec)]);
    const ended = once(process, 'close');
    const fatal = random.pick<TalkEvent>(['asked', 'answered', 'summarizing', 'saved']);
    process.on('message', (event: TalkEvent) => {
      life.push(event);
      if (event === fatal && savedIn([life]) >= TURNS_OF_A_PROCESS) process.kill('SIGKILL');
    });
    const [, signal] = (await ended) as [number | null, string | null];
    expect(signal, `process ${lives.length} ended by itself`).toBe('SIGKILL');
  }
  return lives;
}

/** What the summaries took, one output token each, is counted once, whichever process has the next turn. */
async function expectUsage(store: Store, lives: Lives): Promise<void> {
  const records = await store.readRecords({ sessionId: 'long', kind: COMPACTION_KIND });
  const summaries = records.flatMap(({ value }) => parseRecords(value)).length;
  const recorded = parseChain(records.find(({ key }) => key === CHAIN_KEY)?.value).usage?.outputTokens;
  expect(recorded).toBeGreaterThanOrEqual(summaries);
  expect(recorded).toBeLessThanOrEqual(lives.flat().filter((event) => event === 'summarizing').length);
  const { items } = await store.listSessions();
  const { summaryUsage } = (await store.getSnapshot({ sessionId: 'long' })) as { summaryUsage?: UsageSum };
  expect(items[0]!.usage).toMatchObject({ outputTokens: summaryUsage!['outputTokens'] });
  expect(summaryUsage!['outputTokens']).toBeLessThanOrEqual(recorded!);
}

/** The conversation has every turn that was acknowledged, and no model call was refused that came after a refused one. */
export async function expectSurvival(store: Store, lives: Lives): Promise<void> {
  for (const life of lives) {
    const calls = life.filter((event) => event === 'refused' || event === 'answered');
    expect(calls.join(), `seed ${seed}`).not.toContain('refused,refused');
  }
  await expectUsage(store, lives);
  // The model has refused, and the summarizer was asked.
  expect(lives.flat()).toEqual(expect.arrayContaining(['refused', 'summarizing']));
  const { state } = (await store.getSnapshot({ sessionId: 'long' }))!;
  const turns = state!.messages!.length / 2;
  // A process may have died before it could tell of its last turn.
  expect(turns).toBeGreaterThanOrEqual(savedIn(lives));
  expect(turns).toBeLessThanOrEqual(savedIn(lives) + lives.length);
  expect(state!.messages!.map(({ role }) => role)).toEqual(
    Array.from({ length: turns }, () => ['user', 'model']).flat(),
  );
}
