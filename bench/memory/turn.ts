/** What a turn of an agent takes with a memory, beside the same turn without one. */
import { defineAgent, FileSessionStore, genkit } from 'genkitx-agents';
import { InMemoryMemoryStore, memoryManager, type MemoryStore } from 'genkitx-agents/memory';
import { scriptedModel } from '../../test/support/scripted-model.ts';
import { makeFolder, single, spread, timed } from '../measure.ts';
import type { Report } from '../report.ts';

const TURNS = 400;
const WARM_UP = 40;
const CONTEXT = { auth: { uid: 'one' } };

/** @param fill Puts memories of the user `one` of the app `bench` into a store. */
export async function benchTurn(
  report: Report,
  { fill, questions }: { fill: (store: MemoryStore) => Promise<void>; questions: readonly string[] },
): Promise<void> {
  report.start('a turn with memory', TURNS);
  const ai = genkit();
  const { name: model } = scriptedModel(ai, { otherwise: 'ok' });
  const memories = new InMemoryMemoryStore();
  await fill(memories);
  const memory = memoryManager(ai, { store: memories, appName: 'bench', extract: () => [], worker: false });
  const attached = memory.attach({ learn: false, onReport: () => {} });
  const agentWith = (name: string, options: object) =>
    defineAgent(ai, { name, model, system: 'Be brief.', store: new FileSessionStore(makeFolder()), ...options });
  const agents = { bare: agentWith('bare', {}), remembering: agentWith('remembering', { memory: attached }) };
  const times = { bare: [] as number[], remembering: [] as number[] };
  for (let turn = -WARM_UP; turn < TURNS; turn++) {
    const question = questions[(turn + WARM_UP) % questions.length]!;
    // One after the other, so that both meet the same load of the machine; a new session each, so that both are of one length.
    for (const who of ['bare', 'remembering'] as const) {
      const ms = await timed(() => agents[who].chat({}, { context: CONTEXT }).send(question));
      if (turn >= 0) times[who].push(ms);
    }
    if (turn >= 0) report.progress(1);
  }
  const [bare, remembering] = [spread(times.bare).median, spread(times.remembering).median];
  report.add({
    name: 'what memory adds to a turn, 600 memories, files',
    unit: '%',
    ours: single((100 * (remembering - bare)) / bare),
    theirs: single(0),
    peer: 'the turn without',
    goal: { atMost: 10 },
  });
  report.note(`A turn: ${bare.toFixed(2)} ms without memory, ${remembering.toFixed(2)} ms with one.`);
  await memory.close();
}
