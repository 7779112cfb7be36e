import type { MessageData, Part, SessionSnapshot, ToolRequestPart, ToolResponsePart } from 'genkit/beta';
import { jsonEqual } from '../json/value.ts';

export function isToolRequest(part: Part): part is ToolRequestPart {
  return part.toolRequest !== undefined;
}

export function isToolResponse(part: Part): part is ToolResponsePart {
  return part.toolResponse !== undefined;
}

/** Whether the message has tool requests that wait for an answer. */
export function isWaiting(message: MessageData | undefined): boolean {
  return message?.role === 'model' && message.content.some(isToolRequest);
}

/** Whether the message has tool requests that interrupted their turn. An answered request is no longer an interrupt. */
export function isInterrupted(message: MessageData): boolean {
  return message.role === 'model' && message.content.some((part) => part.metadata?.['interrupt']);
}

/** The response to a tool request that has none: the output of a tool that ran beside a waiting one, or the reason why there is none. */
export function missingResponse({ toolRequest: { name, ref }, metadata = {} }: ToolRequestPart): ToolResponsePart {
  const reason = metadata['interrupt'] ? 'Waits for the user.' : 'The tool did not answer.';
  const output = Object.hasOwn(metadata, 'pendingOutput') ? metadata['pendingOutput'] : reason;
  return { toolResponse: { name, ...(ref !== undefined && { ref }), output } };
}

/**
 * The messages for a model, with a response to each tool request that the user left without an answer. Most providers refuse a conversation
 * with such a request.
 */
export function withResponses(messages: MessageData[]): MessageData[] {
  const isOpen = (message: MessageData, i: number) =>
    i < messages.length - 1 && isWaiting(message) && messages[i + 1]!.role !== 'tool';
  if (!messages.some(isOpen)) return messages;
  return messages.flatMap((message, i) => {
    if (!isOpen(message, i)) return message;
    const requests = message.content.filter(isToolRequest);
    return [message, { role: 'tool', content: requests.map(missingResponse) } satisfies MessageData];
  });
}

/** The origin of the waiting tool requests of a snapshot. It identifies a request in every copy, so that its tool runs once. */
export interface Waits {
  /** For each message whose tool requests wait, in order: the id of the snapshot that had it first. Missing when no request waits. */
  readonly waitingSince?: readonly string[];
}

/** The stored origins of a snapshot. */
export function waitsOf(snapshot: SessionSnapshot | undefined): Waits {
  const { waitingSince } = (snapshot ?? {}) as Waits;
  return waitingSince ? { waitingSince } : {};
}

/** The snapshot from which a conversation continues. */
export interface Before extends Waits {
  /** Missing for the first snapshot. */
  readonly snapshotId?: string | undefined;
  readonly messages: readonly MessageData[] | undefined;
}

/**
 * The origins for a snapshot of these messages. A message that waited in the snapshot before keeps its origin, even if its index
 * changed.
 */
export function waitsAfter(before: Before, snapshotId: string, messages: readonly MessageData[] = []): Waits {
  const { snapshotId: parentId = snapshotId, messages: previous = [], waitingSince: origins } = before;
  if (!origins && !isWaiting(previous.at(-1)) && !isWaiting(messages.at(-1))) return {};
  const earlier = waitingMessages(previous).map((message, i) => ({ message, origin: origins?.[i] ?? parentId }));
  const waitingSince = waitingMessages(messages).map((message) => {
    const same = earlier.findIndex((each) => jsonEqual(each.message, message));
    return same < 0 ? snapshotId : earlier.splice(same, 1)[0]!.origin;
  });
  return waitingSince.length > 0 ? { waitingSince } : {};
}

/** A request that is not an interrupt waits only in the last message. */
function waitingMessages(messages: readonly MessageData[]): MessageData[] {
  return messages.filter((message, i) => (i === messages.length - 1 && isWaiting(message)) || isInterrupted(message));
}
