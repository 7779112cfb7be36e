import { z, type MessageData, type Part } from 'genkit';
import type { Json } from '../../../json/value.ts';
import { beginning, markedLines, messageText } from '../../../session/log/transcript.ts';
import type { MemoryFact, MemoryTopic } from '../../types.ts';
import { isBlank } from '../../same-fact.ts';
import { wordsOf } from '../../search/lexical/words.ts';
import type { AskModel } from '../ask-model.ts';
import { dataFault, describeTopics, givenData, schemaTopic } from './topics.ts';

/** Facts from messages, and the new summary. */
export interface Extracted {
  readonly facts: readonly MemoryFact[];
  /** The number of facts that were ignored because they fit no topic. */
  readonly ignored: number;
  /** Replaces the previous summary. `undefined`: the previous summary stays. */
  readonly summary: string | undefined;
}

const Extraction = z.object({
  memories: z
    .array(
      z.object({
        text: z.string().min(1).describe('One fact, in the third person, understandable without the conversation'),
        topics: z.array(z.string()).describe('Labels of the topics that it fits'),
        messages: z
          .array(z.number().int())
          .optional()
          .describe("Numbers of the messages that say it; one of the user's must be among them"),
        importance: z.number().optional().describe('From 0, trivial, to 1, must never be forgotten'),
        explicit: z.boolean().optional().describe('The user asks to remember it'),
        data: z.unknown().optional().describe("In the shape of the topic's schema, if it has one"),
      }),
    )
    .max(300),
  summary: z.string().optional().describe('The new notes, if they were asked for'),
});

const INSTRUCTIONS = `You keep the long-term memory of an assistant. You read a part of a conversation and write down what will still matter in later conversations.

Write each fact as one short sentence in the present tense and the third person ("The user prefers a window seat"), with names and dates in place of "he", "there" and "tomorrow". Take only what people in the conversation state about themselves, their wishes and their affairs. If they correct themselves, only the last word counts. Leave out what everybody knows, small talk, questions, guesses, what the assistant proposes without an answer, commands to the assistant that do not describe a lasting wish, and what the user wants forgotten. A fact that fits no topic is left out; often there is none, and the list is empty. Describe; do not predict, judge or advise.`;

/** Asks the model for the facts in the messages. */
export async function extractFacts(
  ask: AskModel,
  request: {
    readonly topics: readonly MemoryTopic[];
    readonly messages: readonly MessageData[];
    /** The index of each message in its session. */
    readonly positions: readonly number[];
    /** When the messages were said; ISO 8601 in UTC. */
    readonly at: string;
    readonly summary: string | undefined;
    /** The most characters of the new summary; `0`: no summary. */
    readonly summaryLength: number;
  },
): Promise<Extracted> {
  const { topics, messages, positions, at, summary, summaryLength } = request;
  const notes =
    summary === undefined
      ? ''
      : `Notes about what came before; facts in them are known already:\n${markedLines(summary)}\n\n`;
  const wanted =
    summaryLength > 0
      ? `Answer the memories, and as "summary" new notes that replace the old ones, in at most ${Math.floor(summaryLength / 8)} words.`
      : 'Answer the memories.';
  const answer = await ask({
    system: `${INSTRUCTIONS}\n\nTopics:\n${describeTopics(topics)}`,
    prompt: [{ text: `${notes}${dateOf(at)}\n${conversation(messages, positions, wanted)}` }, ...mediaOf(messages)],
    schema: Extraction,
    fault: ({ memories }, isRepaired) => {
      for (const { topics: labels, data, messages: numbers = [] } of memories) {
        const wrong = dataFault(schemaTopic(topics, labelsOf(topics, labels)), data);
        if (wrong !== undefined) return wrong;
        if (!isRepaired && numbers.some((number) => !positions.includes(number))) {
          return `messages may hold the numbers of the messages alone: ${positions.join(', ')}.`;
        }
      }
      return undefined;
    },
  });
  const notesOnly = fromNotesOnly(messages, summary);
  const facts = answer.memories.flatMap(({ topics: labels, data, explicit, importance, ...rest }): MemoryFact[] => {
    const fitting = labelsOf(topics, labels);
    if (fitting.length === 0 || notesOnly(rest.text)) return [];
    const shaped = schemaTopic(topics, fitting);
    const shape = shaped && { schemaId: shaped.label, data: givenData(shaped, data) as Json };
    const share = importance === undefined ? undefined : Math.min(1, Math.max(0, importance));
    return [{ ...rest, topics: fitting, importance: share, isExplicit: explicit, ...shape }];
  });
  const { summary: next = '' } = answer;
  const ignored = answer.memories.length - facts.length;
  return { facts, ignored, summary: summaryLength > 0 && !isBlank(next) ? beginning(next, summaryLength) : undefined };
}

/** The date of the messages, for words such as "tomorrow". */
function dateOf(at: string): string {
  const weekday = new Date(at).toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' });
  return `The messages are of ${weekday}, ${at.slice(0, 10)}.`;
}

/** Formats the messages for a prompt; `wanted` is the instruction at the end. */
function conversation(messages: readonly MessageData[], positions: readonly number[], wanted: string): string {
  const blocks = messages.map(
    (message, i) => `${positions[i]}. ${message.role}:\n${markedLines(messageText(message))}`,
  );
  return ['Messages:', ...blocks, 'End of the messages.', wanted].join('\n');
}

/** The media in messages of the user. */
function mediaOf(messages: readonly MessageData[]): Part[] {
  return messages.flatMap(({ role, content }) =>
    role === 'user' ? content.filter(({ media }) => media !== undefined) : [],
  );
}

/** The most steps of a procedure, distilled or merged. */
export const MOST_STEPS = 40;

const Procedure = z.object({
  task: z.string().min(1).max(300).describe('What is achieved, general enough to be found for the next such task'),
  steps: z.array(z.string().min(1).max(500)).min(1).max(MOST_STEPS),
});

export type ProcedureDraft = z.output<typeof Procedure>;

/** Asks the model for the steps of a successful session. */
export function distillProcedure(ask: AskModel, messages: readonly MessageData[]): Promise<ProcedureDraft> {
  const positions = messages.map((_, i) => i);
  return ask({
    system:
      'You read a conversation in which an assistant solved a task. Write down how, so that it can be done again: the task in general words, and the steps that led to the end, in order, each as one instruction that names the tools and the checks that were needed. Leave out detours, and names, ids and values of this one case.',
    prompt: conversation(messages, positions, 'Answer the task and the steps.'),
    schema: Procedure,
  });
}

/** Asks the model to rewrite texts without personal data, in the same order. */
export async function withoutPersons(ask: AskModel, texts: readonly string[]): Promise<readonly string[]> {
  if (texts.length === 0) return [];
  const { texts: rewritten } = await ask({
    system:
      'You prepare facts for a memory that all users of an application share. Rewrite each so that it says nothing about a person: no names, no "the user", no contacts, ids, places or dates that point to one person. Keep what is true in general.',
    prompt: texts.map((text, i) => `${i + 1}.\n${markedLines(text)}`).join('\n'),
    schema: z.object({ texts: z.array(z.string().min(1).max(2_000)) }),
    fault: (answer) => {
      if (answer.texts.length !== texts.length) return `there must be ${texts.length} texts.`;
      return answer.texts.some(isBlank) ? 'a text is blank.' : undefined;
    },
  });
  return rewritten;
}

/** The topics' labels that the model named, in any case of the letters. */
function labelsOf(topics: readonly MemoryTopic[], named: readonly string[]): string[] {
  const wanted = new Set(named.map((label) => label.toLowerCase()));
  return topics.map(({ label }) => label).filter((label) => wanted.has(label.toLowerCase()));
}

/**
 * Returns whether a fact only repeats the notes: all its longer words are in the notes, and none in the messages. Such a fact would count as
 * a second source, and remain when the first is forgotten.
 */
function fromNotesOnly(messages: readonly MessageData[], notes: string | undefined): (fact: string) => boolean {
  if (notes === undefined) return () => false;
  const texts = messages.flatMap(({ content }) => content.flatMap(({ text }) => text ?? []));
  const [noted, said] = [new Set(wordsOf(notes)), new Set(wordsOf(texts.join('\n')))];
  return (fact) => {
    const words = wordsOf(fact).filter((word) => word.length > 3 && word !== 'user');
    return words.length > 0 && words.every((word) => noted.has(word) && !said.has(word));
  };
}
