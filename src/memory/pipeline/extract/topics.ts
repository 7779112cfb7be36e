import { toJsonSchema } from 'genkit/schema';
import { invalidArgument } from '../../../errors.ts';
import { markedLines } from '../../../session/log/transcript.ts';
import { checkOptions, isListOf, isObject, isText, type OptionCheck } from '../../../store/check-options.ts';
import type { BuiltInTopic, MemoryExample, MemoryFact, MemoryTopic } from '../../types.ts';
import { firstFault, fitAnswer } from '../fit-answer.ts';
import { toFact } from '../records/check-facts.ts';

const BUILT_IN: Readonly<Record<BuiltInTopic, string>> = {
  USER_PERSONAL_INFORMATION:
    'Who the user is: name, family and friends, home, occupation, interests, health where the user brings it up, important dates.',
  USER_PREFERENCES: 'What the user likes, dislikes, prefers or avoids.',
  EXPLICIT_INSTRUCTIONS: 'What the user expressly asks to be remembered, and how the user wishes to be answered.',
  KEY_CONVERSATION_DETAILS: 'Events, decisions, plans, promises and results that later conversations will need.',
};

/** A schema that can be shown to a model as JSON schema. */
export const isSchema: OptionCheck = (value) => {
  const { safeParse, _def } = (value ?? {}) as { safeParse?: unknown; _def?: { typeName?: unknown } };
  const isOfGenkit = typeof safeParse === 'function' && typeof _def?.typeName === 'string';
  return isOfGenkit ? undefined : "a Zod schema, made with genkit's z";
};

const TOPIC: Readonly<Record<keyof MemoryTopic, OptionCheck>> = {
  label: isText,
  description: isText,
  examples: isListOf(isObject, '{ said, memories }'),
  schema: isSchema,
};

const isExampleMemory: OptionCheck = (value) =>
  isText(typeof value === 'string' ? value : (value as { text?: unknown } | null)?.text);

const EXAMPLE: Readonly<Record<keyof MemoryExample, OptionCheck>> = {
  said: isText,
  memories: isListOf(isExampleMemory, 'texts, or of { text, data }'),
};

/**
 * Returns the topics of a manager, with their descriptions.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function settleTopics(topics: readonly (BuiltInTopic | MemoryTopic)[] | undefined): readonly MemoryTopic[] {
  if (topics?.length === 0)
    throw invalidArgument(
      'memoryManager: topics must have at least one topic, because facts without a topic are not remembered.',
    );
  const settled = (topics ?? (Object.keys(BUILT_IN) as BuiltInTopic[])).map((topic) => {
    if (typeof topic !== 'string') return topic;
    if (Object.hasOwn(BUILT_IN, topic)) return { label: topic, description: BUILT_IN[topic] };
    throw invalidArgument(
      `memoryManager: '${topic as string}' is not a built-in topic. Describe it, or use ${Object.keys(BUILT_IN).join(', ')}.`,
    );
  });
  const labels = new Set<string>();
  for (const [i, topic] of settled.entries()) {
    const at = `memoryManager: topics[${i}]`;
    checkAll(at, topic, TOPIC, ['label', 'description']);
    for (const [j, example] of (topic.examples ?? []).entries())
      checkAll(`${at}.examples[${j}]`, example, EXAMPLE, ['said', 'memories']);
    if (labels.has(topic.label)) throw invalidArgument(`memoryManager: two topics are called '${topic.label}'.`);
    labels.add(topic.label);
  }
  return settled;
}

function checkAll<T extends object>(
  at: string,
  value: T,
  checks: Readonly<Record<keyof T & string, OptionCheck>>,
  needed: readonly (keyof T & string)[],
): void {
  checkOptions(at, value, checks);
  const missing = needed.find((name) => value[name] === undefined);
  if (missing !== undefined) throw invalidArgument(`${at} needs '${missing}'.`);
}

function exampleLines({ text, data }: MemoryFact): string[] {
  return [markedLines(text), ...(data === undefined ? [] : [`  with data: ${JSON.stringify(data)}`])];
}

/** Formats the topics for a prompt. */
export function describeTopics(topics: readonly MemoryTopic[]): string {
  return topics
    .map(({ label, description, examples = [], schema }) => {
      const shape = schema ? [`  data: ${JSON.stringify(toJsonSchema({ schema }))}`] : [];
      const shown = examples.map(({ said, memories }) =>
        [
          '  Example, said:',
          markedLines(said),
          memories.length > 0 ? '  remembered:' : '  nothing is remembered.',
          ...memories.map(toFact).flatMap(exampleLines),
        ].join('\n'),
      );
      return [`- ${label}: ${description}`, ...shape, ...shown].join('\n');
    })
    .join('\n');
}

/** Returns the fault in the `data` of an extracted fact, by the schema of its {@link schemaTopic}. Without a schema, `data` is ignored. */
export function dataFault(topic: MemoryTopic | undefined, data: unknown): string | undefined {
  if (!topic) return undefined;
  const parsed = topic.schema!.safeParse(givenData(topic, data));
  if (parsed.success) return undefined;
  if (data === undefined) return `a memory of topic ${topic.label} needs data.`;
  return `data of topic ${topic.label} ${firstFault(parsed.error)}`;
}

/** The data of a fact, as far as it is clear what the model means. */
export function givenData({ schema }: MemoryTopic, data: unknown): unknown {
  return fitAnswer(data ?? undefined, schema!);
}

/** Returns the topic whose schema applies to the data of a fact with these topics. */
export function schemaTopic(topics: readonly MemoryTopic[], labels: readonly string[]): MemoryTopic | undefined {
  return topics.find(({ label, schema }) => schema !== undefined && labels.includes(label));
}
