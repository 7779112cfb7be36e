/** The quality of a memory: the facts that it keeps of golden conversations, and the tasks that an agent solves with it. */
import { stemmer } from '@orama/stemmers/english';
import { stopwords } from '@orama/stopwords/english';
import type { MessageData } from 'genkit';
import { defineAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import { InMemoryMemoryStore, memoryManager, type MemoryExtractor } from 'genkitx-agents/memory';
import { findMemories } from '../../samples/support/models/offline-memories.ts';
import { single } from '../measure.ts';
import type { Report } from '../report.ts';
import { CONVERSATIONS, TASKS } from './golden.ts';

/** The share of an expected fact's words that an extracted text must have. */
const SAME_FACT = 0.6;
/** The numbers, and names of persons, places, days and months, that an extracted text must also have. */
const EXACT =
  /\p{N}[\p{N}.,:]*|(?<!^)\p{Lu}\p{L}+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|hundred|thousand)\b/gu;
const NEGATION = /\b(?:no|not|never|none|nothing|without|cannot)\b|n't\b/i;
const IGNORED = new Set([...stopwords, 'user', "user's", 'customer', 'says']);

const user = (text: string): MessageData => ({ role: 'user', content: [{ text }] });

/** @param report Gets the figures. */
export async function benchMemoryQuality(report: Report): Promise<void> {
  await benchExtraction(report);
  await benchTasks(report);
}

/** The rules of the sample's offline model, compared with keeping each message. */
async function benchExtraction(report: Report): Promise<void> {
  const cases = CONVERSATIONS.map(({ said, expected }) => ({ messages: said.map(user), expected }));
  const scoresOf = (extract: MemoryExtractor | 'verbatim') =>
    memoryManager(genkit({}), { store: new InMemoryMemoryStore(), extract, worker: false }).evaluate({
      cases,
      isSame: isSameFact,
    });
  const [ours, theirs] = [await scoresOf(findMemories), await scoresOf('verbatim')];
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

function isSameFact(extracted: string, expected: string): boolean {
  if (NEGATION.test(expected) && !NEGATION.test(extracted)) return false;
  const exact = new Set(expected.match(EXACT)?.map((word) => word.toLowerCase()));
  const found = new Set(extracted.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}.,:]*(?<![.,:])/gu));
  return [...exact].every((word) => found.has(word)) && shareOf(wordsOf(expected), wordsOf(extracted)) >= SAME_FACT;
}

/** An agent whose model answers with the line of its request that has most words of the question, compared with this model and every message. */
async function benchTasks(report: Report): Promise<void> {
  const ai = genkit({});
  const placed = new Map<string, string>();
  ai.defineModel({ name: 'reader', apiVersion: 'v2' }, async ({ messages }) => {
    const parts = messages.at(-1)!.content.map(({ text = '' }) => text);
    const lines = parts.slice(0, -1).flatMap((text) => text.split('\n').filter((line) => line.startsWith('| ')));
    placed.set(parts.at(-1)!, lines.join('\n'));
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
  const reached = TASKS.filter(({ question, answer }) => placed.get(question)!.includes(answer));
  const figure = (name: string, ours: number, theirs: number) =>
    report.add({
      name: `${name}, of ${TASKS.length}`,
      unit: '%',
      ours: single(100 * (1 - ours)),
      theirs: single(100 * (1 - theirs)),
      peer: 'the same model with every message',
    });
  figure('tasks whose request lacks the answer', reached.length / TASKS.length, 1);
  figure('tasks not solved with a memory', success, solved.length / TASKS.length);
  await memory.close();
}

/** The line that has most words of the question. If several have, the last one, which is the newest message. */
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
