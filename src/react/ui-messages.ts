/** The parts of the AI SDK's types for `useChat` that this package uses. They are compatible with the SDK's types in both directions. */
import type { AgentInterrupt, AgentSnapshot, MessageData, Part, SessionSnapshot } from '../client/types.ts';

/** The members of a `useChat` message that are read. */
export interface ChatMessage {
  /** Its id. */
  id: string;
  /** `user`, or `assistant` for a reply. */
  role: string;
  /** Its texts, files and tool calls. */
  parts: readonly object[];
  /** The {@link ReplyMetadata} of a reply. */
  metadata?: unknown;
}

/** The metadata of a reply: the point from which the conversation continues. */
export interface ReplyMetadata {
  /** The session. */
  sessionId?: string;
  /** The snapshot that the next message continues from. Default: the reply is an earlier one of `loadedFrom`. */
  snapshotId?: string;
  /** The snapshot that the reply was read from. */
  loadedFrom?: string;
}

/** A part of a stored message, in the form of `useChat`. */
export type ChatPart =
  | { type: 'text' | 'reasoning'; text: string; state: 'done' }
  | { type: 'file'; url: string; mediaType: string }
  | { type: 'step-start' }
  | ({ type: `tool-${string}`; toolCallId: string; input: unknown } & (
      | { state: 'input-available' }
      | { state: 'approval-requested'; approval: { id: string; descriptor?: unknown } }
      | { state: 'output-available'; output: unknown }
    ));

/** A stored message, in the form of `useChat`. */
export interface StoredChatMessage {
  /** Its id: the same each time that the snapshot is read. */
  id: string;
  /** The author. */
  role: 'user' | 'assistant';
  /** Its texts, files and tool calls. */
  parts: ChatPart[];
  /** The point from which the conversation continues after a reply. */
  metadata: ReplyMetadata;
}

/** A tool call of a reply. */
export interface ToolCall {
  /** Its `toolCallId`. */
  id: string;
  name: string;
  ref?: string;
  /** It has no answer yet. */
  isOpen: boolean;
}

/** The id of a tool call, which no other call of the reply has. */
export function newCallId({ name, ref }: { name: string; ref?: string }, calls: readonly ToolCall[]): string {
  const base = ref ?? name;
  const same = calls.filter(({ id }) => id === base || id.startsWith(`${base}~`)).length;
  return same === 0 ? base : `${base}~${same + 1}`;
}

/** The newest open call of this tool and reference. */
export function openCall(
  calls: readonly ToolCall[],
  { name, ref }: { name: string; ref?: string },
): ToolCall | undefined {
  return calls.findLast((call) => call.isOpen && call.name === name && call.ref === ref);
}

/** Returns what a tool waits for, in terms of `useChat`: an approval, or an output that the user gives. */
export type WaitsFor = (interrupt: AgentInterrupt) => 'approval' | 'output';

/**
 * The messages of a snapshot, in the form of `useChat`: its `messages` when a page is loaded. Without a snapshot: none.
 *
 * @param waitsFor As given to `agentTransport`. Default: `approval` for all.
 * @example
 * import { chatMessagesOf } from 'genkitx-agents/react';
 *
 * const support = remoteAgent({ url: '/api/support' });
 * const messages = chatMessagesOf(await support.getSnapshot({ sessionId: 'session-1' }));
 */
export function chatMessagesOf(
  snapshot: AgentSnapshot | SessionSnapshot | undefined,
  waitsFor: WaitsFor = () => 'approval',
): StoredChatMessage[] {
  if (!snapshot) return [];
  const { snapshotId, sessionId, state } = snapshot;
  const waiting = 'interrupts' in snapshot ? snapshot.interrupts : [];
  const messages: StoredChatMessage[] = [];
  let calls: ToolCall[] = [];
  for (const [index, message] of (state?.messages ?? []).entries()) {
    if (message.role === 'system') continue;
    const role = message.role === 'user' ? 'user' : 'assistant';
    if (role === 'user') calls = [];
    let last = messages.at(-1);
    if (last?.role !== role || role === 'user') {
      const metadata = role === 'assistant' ? { sessionId, loadedFrom: snapshotId } : {};
      last = { id: `${sessionId ?? snapshotId}-${index}`, role, parts: [], metadata };
      messages.push(last);
    }
    if (message.role === 'model') last.parts.push({ type: 'step-start' });
    for (const part of message.content) addPart(last.parts, part, calls);
  }
  const last = messages.at(-1);
  if (last?.role === 'assistant') last.metadata = { sessionId, snapshotId };
  for (const interrupt of waiting) {
    const call = waitsFor(interrupt) === 'approval' ? openCall(calls, interrupt) : undefined;
    const place = last?.parts.findIndex((part) => 'toolCallId' in part && part.toolCallId === call?.id) ?? -1;
    if (!call || !last || place < 0) continue;
    const { type, toolCallId, input } = last.parts[place] as Extract<ChatPart, { toolCallId: string }>;
    const approval = { id: call.id, descriptor: interrupt.question };
    last.parts[place] = { type, toolCallId, input, state: 'approval-requested', approval };
  }
  return messages;
}

function addPart(
  parts: ChatPart[],
  { text, reasoning, media, toolRequest, toolResponse }: Part,
  calls: ToolCall[],
): void {
  if (text) parts.push({ type: 'text', text, state: 'done' });
  if (reasoning) parts.push({ type: 'reasoning', text: reasoning, state: 'done' });
  if (media) parts.push({ type: 'file', url: media.url, mediaType: media.contentType ?? 'application/octet-stream' });
  if (toolRequest) {
    const call = { id: newCallId(toolRequest, calls), name: toolRequest.name, ref: toolRequest.ref, isOpen: true };
    calls.push(call);
    parts.push({ type: `tool-${call.name}`, toolCallId: call.id, input: toolRequest.input, state: 'input-available' });
  }
  const call = toolResponse && openCall(calls, toolResponse);
  if (!call) return;
  call.isOpen = false;
  const place = parts.findIndex((part) => 'toolCallId' in part && part.toolCallId === call.id);
  const { type, toolCallId, input } = parts[place] as Extract<ChatPart, { toolCallId: string }>;
  parts[place] = { type, toolCallId, input, state: 'output-available', output: toolResponse.output };
}

/** A user message for the agent: its texts and files. */
export function messageOf({ parts }: ChatMessage): MessageData {
  const content = parts.flatMap((part): Part[] => {
    const { type, text, url, mediaType } = part as Record<string, unknown>;
    if (type === 'text' && typeof text === 'string') return [{ text }];
    if (type === 'file' && typeof url === 'string') return [{ media: { url, contentType: String(mediaType) } }];
    return [];
  });
  return { role: 'user', content };
}

export function metadataOf({ metadata }: ChatMessage): ReplyMetadata {
  return typeof metadata === 'object' && metadata !== null ? metadata : {};
}

/** A tool part of a reply, as the page has changed it. */
export interface AnsweredPart {
  toolCallId: string;
  name: string;
  state?: unknown;
  input?: unknown;
  output?: unknown;
  errorText?: unknown;
  approval?: { approved?: boolean; reason?: string };
}

export function toolPartsOf({ parts }: ChatMessage): AnsweredPart[] {
  return parts.flatMap((part) => {
    const { type, toolName, ...more } = part as { type: string; toolName?: string };
    const name = type === 'dynamic-tool' ? toolName : /^tool-(.*)/s.exec(type)?.[1];
    return name === undefined ? [] : [{ name, ...(more as unknown as Omit<AnsweredPart, 'name'>) }];
  });
}
