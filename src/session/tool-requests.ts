import type { MessageData, SessionSnapshot } from 'genkit/beta';
import { jsonEqual } from '../json/value.ts';

/** Whether the message holds tool requests that somebody has to answer. */
export function isWaiting(message: MessageData | undefined): boolean {
  return message?.role === 'model' && message.content.some((part) => part.toolRequest !== undefined);
}

/** What a snapshot says of the tool requests that wait in it. A request is known by it wherever it was copied to, and runs its tool once. */
export interface Waits {
  /** For each message whose tool requests wait, in order: the snapshot that had it first. Absent where none does. */
  readonly waitingSince?: readonly string[];
}

/** What a stored snapshot says of them. */
export function waitsOf(snapshot: SessionSnapshot | undefined): Waits {
  const { waitingSince } = (snapshot ?? {}) as Waits;
  return waitingSince ? { waitingSince } : {};
}

/** The snapshot from which a conversation continues. */
export interface Before extends Waits {
  /** Absent for the first one. */
  readonly snapshotId?: string | undefined;
  readonly messages: readonly MessageData[] | undefined;
}

/**
 * What a snapshot of these messages says. A message that waited in the snapshot before keeps its origin, wherever in the conversation it is
 * now.
 */
export function waitsAfter(before: Before, snapshotId: string, messages: readonly MessageData[] = []): Waits {
  const { snapshotId: parentId = snapshotId, messages: said = [], waitingSince: origins } = before;
  if (!origins && !isWaiting(said.at(-1)) && !isWaiting(messages.at(-1))) return {};
  const earlier = waitingMessages(said).map((message, i) => ({ message, origin: origins?.[i] ?? parentId }));
  const waitingSince = waitingMessages(messages).map((message) => {
    const same = earlier.findIndex((each) => jsonEqual(each.message, message));
    return same < 0 ? snapshotId : earlier.splice(same, 1)[0]!.origin;
  });
  return waitingSince.length > 0 ? { waitingSince } : {};
}

/** A request that was answered is no interrupt any more; one that is no interrupt waits only in the last message. */
function waitingMessages(messages: readonly MessageData[]): MessageData[] {
  return messages.filter(
    (message, i) =>
      (i === messages.length - 1 && isWaiting(message)) ||
      (message.role === 'model' && message.content.some((part) => part.metadata?.['interrupt'])),
  );
}
