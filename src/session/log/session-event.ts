import { createHash } from 'node:crypto';
import { MessageSchema } from 'genkit';
import type { MessageData } from 'genkit/beta';
import { invalidArgument } from '../../errors.ts';
import { isPlain } from '../../json/fault.ts';
import { jsonBytes } from '../../json/size.ts';
import { copyJson, JsonValueError, setMember, type Json } from '../../json/value.ts';
import { parseStateKey } from '../state/state-keys.ts';
import type { StateRules } from '../state/state-values.ts';

/** What an event does besides saying something. */
export interface EventActions {
  /** Keys of the session's state, with their prefixes, and their new values. */
  stateDelta?: { [key: string]: Json };
}

/** One thing that happened in a session. */
export interface SessionEvent {
  /** Names the event within its session. */
  id: string;
  /** The same for all events of one turn. */
  invocationId: string;
  /** `user`, or the name of who said it. */
  author: string;
  /** When it happened, in ms since 1970. Events are in the order in which they were appended, whatever their timestamps are. */
  timestamp: number;
  /** What was said. Absent of an event that only changes the state. */
  content?: MessageData;
  /** What it did to the state. */
  actions: EventActions;
}

/** An event to append. Members besides these are kept as they are, if they are JSON. */
export interface SessionEventInput {
  /**
   * A random UUID unless told. An event whose id the session has already is not appended again, so an append whose outcome is unknown is
   * repeated with the same id. On a branch that the session has left it is no event of the session, and its id is refused.
   */
  id?: string;
  /** The event's id unless told. */
  invocationId?: string;
  /** `user`, or the name of who said it: 1 to 1,024 characters. */
  author: string;
  /** In ms since 1970; now unless told. */
  timestamp?: number;
  /** A Genkit message of the role `user`, `model` or `tool`. */
  content?: MessageData;
  /** What it does to the state, in the same commit; nothing unless told. All of a delta may take 256 KiB more than one value may. */
  actions?: EventActions;
}

/** An event as its snapshot tells of it: what was said is a message of the state. */
export type EventRecord = Omit<SessionEvent, 'content'>;

/** What becomes of values of the state. */
export interface EventRules {
  /** Which ones may be. */
  readonly values: StateRules;
  /** The most that one may take as JSON, in bytes. */
  readonly maxValueBytes: number;
}

/** The most that an event may take as JSON besides its content and its delta, and that a delta may besides one value; both are stored in one piece. */
const MAX_EVENT_BYTES = 256 * 1024;

/**
 * An event with nothing left open: copied, without `temp:` keys, whatever their values are.
 *
 * @throws StateError for a key or a value of the delta that can't be, `INVALID_ARGUMENT` for all else.
 */
export function settleEvent(input: SessionEventInput, rules: EventRules): SessionEvent {
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
      `An event may take ${MAX_EVENT_BYTES} bytes besides its content and its stateDelta; put what is large there.`,
    );
  }
  const delta = stateDelta === undefined ? {} : { stateDelta: lasting(stateDelta, rules) };
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
    throw invalidArgument(`An event's ${name} must be a string of 1 to 1,024 characters that is not blank.`);
  }
}

function assertContent(content: MessageData): void {
  if (!MessageSchema.safeParse(content).success || content.role === 'system' || content.content.length === 0) {
    throw invalidArgument(
      "An event's content must be a Genkit message, { role: 'user' | 'model' | 'tool', content: [{ text: '...' }, ...] }; " +
        'leave it out when there is nothing said.',
    );
  }
}

/** A copy of a delta, without what lives no longer than the turn. */
function lasting(delta: unknown, rules: EventRules): { [key: string]: Json } {
  if (typeof delta !== 'object' || delta === null || Array.isArray(delta) || !isPlain(delta)) {
    throw invalidArgument("An event's actions.stateDelta must be an object of keys and their new values.");
  }
  const values: StateRules = rules.values;
  const kept: { [key: string]: Json } = {};
  for (const [key, value] of Object.entries(delta)) {
    const place = parseStateKey(key);
    if (value === undefined || place.scope === 'temp') continue;
    values.assertKey(key);
    setMember(kept, key, values.accept(place, value));
  }
  const most = MAX_EVENT_BYTES + rules.maxValueBytes;
  if (jsonBytes(kept, most) > most) {
    throw invalidArgument(`An event's stateDelta may take ${most} bytes in all; make several events of it.`);
  }
  return kept;
}

/** The id of an event's snapshot: always the same, so that no event is appended twice. */
export function snapshotIdOf(sessionId: string, eventId: string): string {
  return createHash('sha256')
    .update(JSON.stringify([sessionId, eventId]))
    .digest('base64url');
}

/** What was said as a message of the session. It names its event, which a message may outlive when its snapshot is pruned. */
export function toMessage({ content, id, invocationId, author, timestamp }: SessionEvent): MessageData | undefined {
  if (!content) return undefined;
  return { ...content, metadata: { ...content.metadata, event: { id, invocationId, author, timestamp } } };
}

/** What was said, from {@link toMessage}'s message. */
export function contentOf(message: MessageData): MessageData {
  const { metadata, ...content } = message;
  const { event: _event, ...others } = metadata ?? {};
  return Object.keys(others).length === 0 ? content : { ...content, metadata: others };
}

/** What a message that an agent added is as an event, or one whose snapshot is gone. */
export function eventOfMessage(message: MessageData, unless: Omit<EventRecord, 'actions'>): SessionEvent {
  const told = message.metadata?.['event'] as Partial<EventRecord> | undefined;
  return { ...unless, ...told, content: contentOf(message), actions: {} };
}
