import type { MessageData } from 'genkit';
import { failedPrecondition, invalidArgument } from '../../../errors.ts';
import {
  checkOptions,
  isAny,
  isBoolean,
  isListOf,
  isObject,
  isOneOf,
  isShare,
  isString,
  isTime,
  type OptionCheck,
} from '../../../store/check-options.ts';
import { assertId } from '../../../snapshot/ids.ts';
import type { IngestOptions, IngestSource } from '../../types.ts';
import { checkCall } from '../pipeline.ts';
import { checkFacts, isJson } from '../records/check-facts.ts';
import type { MemorySettings } from '../../settings.ts';

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

const ROLES = new Set<unknown>(['user', 'model', 'tool', 'system']);

/**
 * Checks the options of `ingest` for a manager with these settings.
 *
 * @throws `INVALID_ARGUMENT`; `FAILED_PRECONDITION` if the manager lacks a needed option.
 */
export function checkIngest(options: IngestOptions, { model, extract, app, isSuccess }: MemorySettings): void {
  checkCall('ingest', options, INGEST);
  const { scope, source, messages, memories, sessionId, procedure } = options;
  checkOptions('ingest: source', source, SOURCE);
  if (sessionId === undefined) {
    if (!source) throw invalidArgument("ingest needs a 'source', or a 'sessionId'.");
    assertId(source.id, 'source id');
  }
  if ([messages, memories, sessionId].filter((given) => given !== undefined).length !== 1)
    throw invalidArgument("ingest needs one of 'messages', 'memories' and 'sessionId'.");
  if (memories !== undefined) checkFacts('ingest: memories', memories);
  if (messages !== undefined) checkMessages('ingest: messages', messages);
  if (scope.kind === 'app' && !app) {
    throw failedPrecondition(
      'All users of an app can read its memories. To allow such memories, set app: true of memoryManager.',
    );
  }
  const isVerbatim = options.extract === 'verbatim';
  if (!memories && !isVerbatim && !procedure && model === undefined && extract === undefined)
    throw failedPrecondition('To learn from messages, memoryManager needs a model or the option extract.');
  if (!procedure) return;
  if (isVerbatim) throw invalidArgument("A procedure can't be made 'verbatim'. Omit extract.");
  if (model === undefined)
    throw failedPrecondition('A model makes procedures. Pass the option model to memoryManager.');
  if (!isSuccess)
    throw failedPrecondition(
      'Procedures are made from successful sessions. Pass the option isSuccess to memoryManager.',
    );
  if (memories) throw invalidArgument("A procedure is made from 'messages' or a 'sessionId', not from 'memories'.");
}

/** @throws `INVALID_ARGUMENT` with the position. */
export function checkMessages(owner: string, messages: unknown): asserts messages is readonly MessageData[] {
  const form = "Write messages as [{ role: 'user', content: [{ text: '...' }] }].";
  if (!Array.isArray(messages)) throw invalidArgument(`${owner} must be a list. ${form}`);
  for (const [i, message] of messages.entries()) {
    const { role, content } = (message ?? {}) as Partial<MessageData>;
    if (!ROLES.has(role))
      throw invalidArgument(`${owner}[${i}] must have the role user, model, tool or system. ${form}`);
    const isParts = isListOf(isObject, 'parts')(content) === undefined;
    if (!isParts || content!.some(({ text }) => text !== undefined && typeof text !== 'string'))
      throw invalidArgument(`${owner}[${i}] must have a list of parts as its content. ${form}`);
    const expected = isJson(message);
    if (expected !== undefined) throw invalidArgument(`${owner}[${i}] must be ${expected}`);
  }
}
