import type { MessageData, Part, ToolRequestPart, ToolResponsePart } from 'genkit';
import { isToolRequest, isToolResponse, missingResponse } from '../../session/tool-requests.ts';
import type { HistoryItem } from '../types.ts';

/**
 * Adds messages that a strategy must not leave out: the responses of each kept tool request, the request of each kept response, and the
 * user message with which the first turn begins.
 *
 * @param log All earlier messages. An item's position is its index here.
 * @param coveredTo Messages before this position are covered by the summary and never sent.
 */
export function completed(kept: readonly HistoryItem[], log: readonly MessageData[], coveredTo = 0): HistoryItem[] {
  const byPosition = new Map<number, HistoryItem>();
  for (const item of kept) {
    if (item.position >= coveredTo && log[item.position] !== undefined) byPosition.set(item.position, item);
  }
  const add = (position: number): void => {
    if (position >= coveredTo && !byPosition.has(position))
      byPosition.set(position, { position, message: log[position]! });
  };
  for (const { position } of kept) {
    let asked = position;
    while (log[asked]?.role === 'tool') asked--;
    if (!log[asked]?.content.some(isToolRequest)) continue;
    add(asked);
    for (let next = asked + 1; log[next]?.role === 'tool'; next++) add(next);
  }
  const first = Math.min(...byPosition.keys());
  const start = log.findLastIndex(({ role }, i) => i <= first && role === 'user');
  if (start >= 0 && Number.isFinite(first)) add(start);
  return [...byPosition.values()].toSorted((a, b) => a.position - b.position);
}

/**
 * Returns messages that every provider accepts: the user begins, roles alternate, each tool request has exactly one response in the next
 * message, and no message or text is empty, except a prompt. A message that is correct already stays the same object.
 */
export function repaired(messages: readonly MessageData[]): MessageData[] {
  const sound: MessageData[] = [];
  for (let i = 0; i < messages.length; i++) {
    // A tool message that answers no request is left out.
    if (messages[i]!.role === 'tool') continue;
    const message = withoutStrays(messages[i]!);
    // An empty prompt is sent as it is: a request that ends with a message of the model is refused.
    const isNeeded = i === messages.length - 1 && sound.at(-1)?.role !== 'user';
    if (message.content.length === 0 && !isNeeded) continue;
    append(sound, message.content.length > 0 ? message : messages[i]!);
    const requests = message.content.filter(isToolRequest);
    if (requests.length === 0) continue;
    const answers: MessageData[] = [];
    while (messages[i + 1]?.role === 'tool') answers.push(messages[++i]!);
    sound.push(answered(requests, answers));
  }
  if (sound.length > 0 && sound[0]!.role === 'model') {
    sound.unshift({ role: 'user', content: [{ text: '(The assistant begins the conversation.)' }] });
  }
  return sound;
}

/** Adds a message, or joins it with the last one if both have the same role. System messages are not joined. */
function append(messages: MessageData[], message: MessageData): void {
  const last = messages.at(-1);
  if (last?.role !== message.role || last.role === 'system') messages.push(message);
  else messages[messages.length - 1] = { ...last, content: [...last.content, ...message.content] };
}

function withoutStrays(message: MessageData): MessageData {
  const { role, content } = message;
  const isStray = (part: Part) =>
    isToolResponse(part) || (isToolRequest(part) && role !== 'model') || (part.text === '' && !part.metadata);
  return content.some(isStray) ? { ...message, content: content.filter((part) => !isStray(part)) } : message;
}

/** A tool message with one response for each request. */
function answered(requests: readonly ToolRequestPart[], answers: readonly MessageData[]): MessageData {
  const responses = answers.flatMap(({ content }) => content).filter(isToolResponse);
  const open = new Set(responses);
  const content = requests.map((request): ToolResponsePart => {
    const { name, ref } = request.toolRequest;
    const response = [...open].find(({ toolResponse }) => toolResponse.name === name && toolResponse.ref === ref);
    if (response) open.delete(response);
    return response ?? missingResponse(request);
  });
  const only = answers.length === 1 ? answers[0]! : undefined;
  const isSound = only?.content.length === content.length && content.every((part) => only.content.includes(part));
  return isSound ? only : { role: 'tool', content };
}
