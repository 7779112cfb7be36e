import type { MessageData } from 'genkit';
import { failedPrecondition, invalidArgument } from '../../../errors.ts';
import { jsonBytes } from '../../../json/size.ts';
import { inspectNested, JsonValueError } from '../../../json/value.ts';
import {
  checkOptions,
  isAny,
  isBoolean,
  isListOf,
  isObject,
  isOneOf,
  isShare,
  isString,
  isText,
  isTime,
  isWhole,
  type OptionCheck,
} from '../../../store/check-options.ts';
import type { IngestOptions, IngestSource, MemoryFact } from '../../types.ts';
import { checkCall } from '../pipeline.ts';
import type { MemorySettings } from '../../settings.ts';

const isJson: OptionCheck = (value) => {
  try {
    inspectNested(value, 0);
    return undefined;
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    return `plain JSON: ${error.message}`;
  }
};

const INGEST = {
  source: (value: unknown) => (isObject(value) ? '{ id, ... }' : undefined),
  messages: isAny,
  memories: isAny,
  sessionId: isAny,
  extract: isOneOf('verbatim'),
  procedure: isBoolean,
  wait: isBoolean,
};

const SOURCE: Readonly<Record<keyof IngestSource, OptionCheck>> = {
  id: isAny,
  type: isOneOf('bootstrap', 'explicit', 'implicit', 'tool'),
  trust: isShare,
  sessionId: isString,
  snapshotId: isString,
  at: isTime,
};

const FACT: Readonly<Record<keyof MemoryFact, OptionCheck>> = {
  text: isText,
  data: isJson,
  schemaId: isText,
  topics: isListOf(isText, 'labels'),
  importance: isShare,
  key: isText,
  kind: isOneOf('declarative', 'procedural'),
  messages: isListOf(isWhole(0), 'positions of messages'),
  isExplicit: isBoolean,
  expiresAt: isTime,
};

/** The most bytes of a fact besides its text: a memory keeps them twice, in itself and in its source, and a store takes 256 KiB. */
const MAX_FACT_BYTES = 112 * 1024;

const ROLES = new Set<unknown>(['user', 'model', 'tool', 'system']);

/**
 * Checks the options of `ingest` for a manager with these settings.
 *
 * @throws `INVALID_ARGUMENT`; `FAILED_PRECONDITION` if the manager lacks a needed option.
 */
export function checkIngest(options: IngestOptions, { model, extract, app, isSuccess }: MemorySettings): void {
  checkCall('ingest', options, INGEST);
  const { scope, source, messages, memories, procedure } = options;
  checkOptions('ingest: source', source, SOURCE);
  if (memories !== undefined) checkFacts('ingest: memories', memories);
  if (messages !== undefined) checkMessages('ingest: messages', messages);
  if (scope.kind === 'app' && !app) {
    throw failedPrecondition(
      'Memories of an app are read by all its users: set app: true of memoryManager to make some.',
    );
  }
  const isLearned = messages && options.extract !== 'verbatim';
  if (isLearned && model === undefined && (extract === undefined || procedure)) {
    throw failedPrecondition(
      `Without a model nothing can be learned from messages${procedure ? ', and no procedure be made' : ''}: give memoryManager one, or extract.`,
    );
  }
  if (!procedure) return;
  if (!isSuccess)
    throw failedPrecondition('Procedures are made of sessions that were a success: give memoryManager isSuccess.');
  if (!messages) throw invalidArgument("A procedure is made of 'messages' or a 'sessionId'.");
}

/** @throws `INVALID_ARGUMENT` naming the position and the member. A malformed fact would fail its job, and later jobs of the scope wait for it. */
function checkFacts(owner: string, facts: unknown): asserts facts is readonly (MemoryFact | string)[] {
  if (!Array.isArray(facts)) throw invalidArgument(`${owner} must be a list of texts, or of facts such as { text }.`);
  for (const [i, fact] of facts.entries()) {
    const at = `${owner}[${i}]`;
    const isFact = typeof fact === 'string' ? isText(fact) === undefined : isObject(fact) === undefined;
    if (!isFact) throw invalidArgument(`${at} must be a text that is not blank, or a fact such as { text }.`);
    if (typeof fact === 'string') continue;
    checkOptions(at, fact as MemoryFact, FACT);
    const { text, ...rest } = fact as Partial<MemoryFact>;
    if (text === undefined) throw invalidArgument(`${at} needs a text.`);
    if (jsonBytes(rest, MAX_FACT_BYTES) > MAX_FACT_BYTES)
      throw invalidArgument(
        `${at} takes more than ${MAX_FACT_BYTES} bytes besides its text. Divide it, or keep large values elsewhere.`,
      );
  }
}

/** @throws `INVALID_ARGUMENT` naming the position. */
export function checkMessages(owner: string, messages: unknown): asserts messages is readonly MessageData[] {
  const form = "Write messages as [{ role: 'user', content: [{ text: '...' }] }].";
  if (!Array.isArray(messages)) throw invalidArgument(`${owner} must be a list. ${form}`);
  for (const [i, message] of messages.entries()) {
    const { role, content } = (message ?? {}) as Partial<MessageData>;
    if (!ROLES.has(role))
      throw invalidArgument(`${owner}[${i}] must have the role user, model, tool or system. ${form}`);
    const isParts = isListOf(isObject, 'parts')(content) === undefined;
    if (!isParts || content!.some(({ text }) => text !== undefined && typeof text !== 'string'))
      throw invalidArgument(`${owner}[${i}] must have a content that is a list of parts. ${form}`);
    const expected = isJson(message);
    if (expected !== undefined) throw invalidArgument(`${owner}[${i}] must be ${expected}`);
  }
}
