/** What a memory is good for: which facts are kept of golden conversations, and which tasks an agent solves with it. */
import { stemmer } from '@orama/stemmers/english';
import { stopwords } from '@orama/stopwords/english';
import type { MessageData } from 'genkit';
import { defineAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import { InMemoryMemoryStore, memoryManager, type MemoryExtractor } from 'genkitx-agents/memory';
import { findMemories } from '../../samples/support/models/offline-memories.ts';
import { single } from '../measure.ts';
import type { Report } from '../report.ts';
import { CONVERSATIONS, TASKS } from './golden.ts';

/** Two texts state the same fact if the extracted one has this share of the expected one's words. */
const SAME_FACT = 0.6;
const IGNORED = new Set([...stopwords, 'user', "user's", 'customer', 'says']);

const user = (text: string): MessageData => ({ role: 'user', content: [{ text }] });
const everything: MemoryExtractor = ({ messages }) => messages.map(({ content }) => content[0]!.text!);

/** @param report Gets the figures. */
export async function benchMemoryQuality(report: Report): Promise<void> {
  await benchExtraction(report);
  await benchTasks(report);
}

/** The rules with which the sample learns without a model, beside keeping each message. */
async function benchExtraction(report: Report): Promise<void> {
  const cases = CONVERSATIONS.map(({ said, expected }) => ({ messages: said.map(user), expected }));
  const scoresOf = (extract: MemoryExtractor) =>
    memoryManager(genkit({}), { store: new InMemoryMemoryStore(), extract, worker: false }).evaluate({
      cases,
      isSame: (extracted, expected) => shareOf(wordsOf(expected), wordsOf(extracted)) >= SAME_FACT,
    });
  const [ours, theirs] = [await scoresOf(findMemories), await scoresOf(everything)];
  const figure = (name: string, part: 'precision' | 'recall' | 'f1'): void =>
    report.add({
      name: `extraction by the sample's rules, ${CONVERSATIONS.length} conversations: ${name}`,
      unit: '%',
      ours: single(100 * (1 - ours[part])),
      theirs: single(100 * (1 - theirs[part])),
      peer: 'each message kept',
    });
  figure('kept and not expected (1 - precision)', 'precision');
  figure('expected and not kept (1 - recall)', 'recall');
  figure('1 - F1', 'f1');
}

/** An agent whose model answers with the line of its request that has most words of the question, beside that model with every message. */
async function benchTasks(report: Report): Promise<void> {
  const ai = genkit({});
  ai.defineModel({ name: 'reader', apiVersion: 'v2' }, async ({ messages }) => {
    const parts = messages.at(-1)!.content.map(({ text = '' }) => text);
    const lines = parts.slice(0, -1).flatMap((text) => text.split('\n').filter((line) => line.startsWith('| ')));
    return { message: { role: 'model', content: [{ text: read(lines, parts.at(-1)!) }] }, finishReason: 'stop' };
  });
  ai.defineEvaluator(
    { name: 'contains', displayName: 'Contains', definition: 'The answer contains the reference.' },
    async ({ testCaseId, output, reference }) => ({
      testCaseId,
      evaluation: { score: String(output).includes(String(reference)) },
    }),
  );
  const memory = memoryManager(ai, { store: new InMemoryMemoryStore(), extract: 'verbatim', worker: false });
  const agent = defineAgent(ai, {
    name: 'answering',
    model: 'reader',
    store: new InMemorySessionStore(),
    memory: memory.attach({ onReport: () => {} }),
  });
  report.start('memory, tasks', TASKS.length);
  const { success } = await memory.evaluateTasks({
    tasks: TASKS.map(({ sessions, question, answer }) => ({
      sessions: sessions.map((said) => said.map(user)),
      question,
      reference: answer,
    })),
    answer: async ({ question, context }) => {
      report.progress(1);
      return (await agent.chat({}, { context }).send(question)).text;
    },
    evaluator: 'contains',
  });
  const solved = TASKS.filter(({ sessions, question, answer }) => read(sessions.flat(), question).includes(answer));
  report.add({
    name: `tasks not solved with a memory, of ${TASKS.length}`,
    unit: '%',
    ours: single(100 * (1 - success)),
    theirs: single(100 * (1 - solved.length / TASKS.length)),
    peer: 'the same model with every message',
  });
  await memory.close();
}

/** The line that has most words of the question; of equal ones the last, which is the newest of messages. */
function read(lines: readonly string[], question: string): string {
  const asked = wordsOf(question);
  let best = { line: 'I do not know.', share: -1 };
  for (const line of lines) {
    const share = shareOf(asked, wordsOf(line));
    if (share >= best.share) best = { line, share };
  }
  return best.line;
}

function shareOf(words: ReadonlySet<string>, inside: ReadonlySet<string>): number {
  return [...words].filter((word) => inside.has(word)).length / Math.max(1, words.size);
}

function wordsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
  return new Set(words.filter((word) => !IGNORED.has(word)).map((word) => stemmer(word)));
}
