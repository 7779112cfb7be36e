import type { MessageData, Part, SessionSnapshot } from 'genkitx-agents';
import { brief, oneLine, safe, time } from './text.ts';

/** How a snapshot is shown. */
export interface Detail {
  /** Values in full, not in one line. */
  readonly isFull: boolean;
}

/** A snapshot as lines for people: its facts, the messages, the state, the artifacts, the error. */
export function* conversation(snapshot: SessionSnapshot, detail: Detail): Generator<string> {
  const { snapshotId, sessionId, parentId, status, createdAt, finishReason, error, state } = snapshot;
  const facts = [
    sessionId !== undefined && `session ${sessionId}`,
    `snapshot ${snapshotId}`,
    parentId !== undefined && `parent ${parentId}`,
    status,
    finishReason !== status && finishReason,
    time(createdAt),
  ];
  yield safe(facts.filter(Boolean).join(' · '));
  const messages = state?.messages ?? [];
  for (const message of messages) {
    yield '';
    yield* messageLines(message, detail);
  }
  const custom = Object.entries((state?.custom ?? {}) as Record<string, unknown>);
  if (custom.length > 0) yield* ['', 'state'];
  for (const [key, value] of custom) yield `  ${oneLine(key)}: ${shown(value, detail)}`;
  const artifacts = state?.artifacts ?? [];
  if (artifacts.length > 0) yield* ['', 'artifacts'];
  for (const { name, parts } of artifacts) {
    yield `  ${oneLine(name ?? 'without a name')}`;
    if (detail.isFull) for (const part of parts) yield `    ${partLine(part, detail)}`;
  }
  if (!error) return;
  yield* ['', `error ${safe(error.status ?? '')}: ${safe(error.message)}`];
  const { errorId } = (error.details ?? {}) as { errorId?: unknown };
  if (typeof errorId === 'string')
    yield `  errorId ${safe(errorId)}: the log of the process that ran the turn has more.`;
}

/** A message: its role, then its parts; each tool call in one line. */
export function* messageLines({ role, content }: MessageData, detail: Detail): Generator<string> {
  yield `${role}:`;
  for (const part of content) {
    for (const line of partLine(part, detail).split('\n')) yield `  ${line}`;
  }
}

/** The user's last message; empty when there is none. */
export function lastPrompt(snapshot: SessionSnapshot | undefined): string {
  const message = snapshot?.state?.messages?.findLast(({ role }) => role === 'user');
  return (message?.content ?? []).map(({ text }) => text ?? '').join(' ');
}

function partLine(part: Part, detail: Detail): string {
  const { text, reasoning, media, toolRequest, toolResponse } = part;
  if (text !== undefined) return safe(text);
  if (toolRequest) return `→ ${oneLine(toolRequest.name)} ${shown(toolRequest.input, detail)}`;
  if (toolResponse) return `← ${oneLine(toolResponse.name)} ${shown(toolResponse.output, detail)}`;
  if (reasoning !== undefined) return `(thinks) ${detail.isFull ? safe(reasoning) : oneLine(reasoning)}`;
  if (media) return `[${oneLine(media.contentType ?? 'media')} ${oneLine(media.url, 60)}]`;
  return shown(part, detail);
}

function shown(value: unknown, { isFull }: Detail): string {
  return isFull ? safe(JSON.stringify(value, undefined, 2) ?? '') : brief(value);
}
