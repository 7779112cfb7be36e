import { createHash } from 'node:crypto';
import { MessageSchema } from 'genkit';
import type { MessageData } from 'genkit/beta';
import { invalidArgument } from '../../errors.ts';
import { isPlainObject } from '../../json/fault.ts';
import { jsonBytes } from '../../json/size.ts';
import { copyJson, JsonValueError, setMember, type Json } from '../../json/value.ts';
import { parseStateKey } from '../state/state-keys.ts';
import type { StateRules } from '../state/state-values.ts';

/** The effects of an event besides its content. */
export interface EventActions {
  /** Keys of the session's state, with their prefixes, and their new values. */
  stateDelta?: { [key: string]: Json };
}

/** One event of a session. */
export interface SessionEvent {
  /** The event's id within its session. */
  id: string;
  /** The same for all events of one turn. */
  invocationId: string;
  /** `user`, or the name of the speaker. */
  author: string;
  /** The event's time, in ms since 1970. Events are ordered as they were appended, not by timestamp. */
  timestamp: number;
  /** The message. Missing when the event only changes the state. */
  content?: MessageData;
  /** The event's changes to the state. */
  actions: EventActions;
}

/** An event to append. Other JSON members are kept unchanged. */
export interface SessionEventInput {
  /**
   * The event's id. Default: a random UUID. An event whose id the session already has is not appended again, so repeat an append with an
   * unknown outcome under the same id. The id of an event on an abandoned branch of the session is refused.
   */
  id?: string;
  /** Default: the event's id. */
  invocationId?: string;
  /** `user`, or the name of the speaker: 1 to 1,024 characters. */
  author: string;
  /** In ms since 1970. Default: now. */
  timestamp?: number;
  /** A Genkit message of the role `user`, `model` or `tool`. */
  content?: MessageData;
  /** Changes to the state, in the same commit. Default: none. A whole delta may take 256 KiB more than the limit of one value. */
  actions?: EventActions;
}

/** An event as its snapshot stores it; its content is a message of the state. */
export type EventRecord = Omit<SessionEvent, 'content'>;

/** Maximum size as JSON of an event without its content and delta. A delta may take this much more than the limit of one value. */
const MAX_EVENT_BYTES = 256 * 1024;

/**
 * A copy of the event with all defaults applied and without `temp:` keys, even invalid ones.
 *
 * @throws StateError for an invalid key or value of the delta, `INVALID_ARGUMENT` for any other error.
 */
export function resolveEvent(input: SessionEventInput, rules: StateRules): SessionEvent {
  if (typeof input !== 'object' || input === null) throw invalidArgument('An event must be an object.');
  const { actions: givenActions, ...others } = input;
  const { stateDelta, ...otherActions } = givenActions ?? {};
  const { actions: copiedActions, content, ...fields } = copyEvent({ ...others, actions: otherActions });
  const id = fields.id ?? globalThis.crypto.randomUUID();
  const { invocationId = id, author, timestamp = Date.now() } = fields;
  for (const [name, value] of Object.entries({ id, invocationId, author })) assertName(name, value);
  if (typeof timestamp !== 'number') throw invalidArgument("An event's timestamp must be a number, ms since 1970.");
  const bare: EventRecord = { ...fields, id, invocationId, author, timestamp, actions: { ...copiedActions } };
  if (jsonBytes(bare, MAX_EVENT_BYTES) > MAX_EVENT_BYTES) {
    throw invalidArgument(
      `An event may take ${MAX_EVENT_BYTES} bytes besides its content and its stateDelta. Put large values there.`,
    );
  }
  const delta = stateDelta === undefined ? {} : { stateDelta: withoutTemp(stateDelta, rules) };
  const record: EventRecord = { ...bare, actions: { ...bare.actions, ...delta } };
  if (content === undefined) return record;
  assertContent(content);
  return { ...record, content };
}

function copyEvent(input: SessionEventInput): SessionEventInput {
  try {
    return copyJson(input);
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    throw invalidArgument(`The event can't be stored because of its member "${error.path}": ${error.reason}.`);
  }
}

function assertName(name: string, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '' || value.length > 1024) {
    throw invalidArgument(`An event's ${name} must be a string of 1 to 1,024 characters, not blank.`);
  }
}

function assertContent(content: MessageData): void {
  if (!MessageSchema.safeParse(content).success || content.role === 'system' || content.content.length === 0) {
    throw invalidArgument(
      "An event's content must be a Genkit message, { role: 'user' | 'model' | 'tool', content: [{ text: '...' }, ...] }; " +
        'omit it when the event has no message.',
    );
  }
}

function withoutTemp(delta: unknown, rules: StateRules): { [key: string]: Json } {
  if (!isPlainObject(delta)) {
    throw invalidArgument("An event's actions.stateDelta must be an object of keys and their new values.");
  }
  const kept: { [key: string]: Json } = {};
  for (const [key, value] of Object.entries(delta)) {
    const place = parseStateKey(key);
    if (value === undefined || place.scope === 'temp') continue;
    rules.assertKey(key);
    setMember(kept, key, rules.accept(place, value));
  }
  const most = MAX_EVENT_BYTES + rules.limits.maxValueBytes;
  if (jsonBytes(kept, most) > most) {
    throw invalidArgument(`An event's stateDelta may take ${most} bytes in total. Split it into several events.`);
  }
  return kept;
}

/** The id of an event's snapshot. It is deterministic, so that no event is appended twice. */
export function snapshotIdOf(sessionId: string, eventId: string): string {
  return createHash('sha256')
    .update(JSON.stringify([sessionId, eventId]))
    .digest('base64url');
}

/** The content as a message of the session. The message names its event, because it may outlive the event's snapshot after a prune. */
export function toMessage({ content, id, invocationId, author, timestamp }: SessionEvent): MessageData | undefined {
  if (!content) return undefined;
  return { ...content, metadata: { ...content.metadata, event: { id, invocationId, author, timestamp } } };
}

/** The content of a message made by {@link toMessage}. */
export function contentOf(message: MessageData): MessageData {
  const { metadata, ...content } = message;
  const { event: _event, ...others } = metadata ?? {};
  return Object.keys(others).length === 0 ? content : { ...content, metadata: others };
}

/** The event of an agent's message, or of a message whose snapshot was pruned. */
export function eventOfMessage(message: MessageData, defaults: Omit<EventRecord, 'actions'>): SessionEvent {
  const stored = message.metadata?.['event'] as Partial<EventRecord> | undefined;
  return { ...defaults, ...stored, content: contentOf(message), actions: {} };
}
