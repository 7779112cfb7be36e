import type { AgentStreamChunk, MessageData, Part } from '../client/types.ts';

/** The streamed messages of a turn after a chunk. Messages that the chunk does not change stay the same objects. */
export function withChunk(messages: StreamedMessage[], { modelChunk }: AgentStreamChunk): StreamedMessage[] {
  if (!modelChunk) return messages;
  const { index, content, aggregated } = modelChunk;
  // A waiting tool request is streamed with the role 'tool'.
  const role = content.some(({ toolRequest }) => toolRequest) ? 'model' : (modelChunk.role ?? 'model');
  const last = messages.at(-1);
  const isContinued = last?.role === role && (index === undefined || last.index === undefined || last.index === index);
  if (!isContinued) return [...messages, { role, index, content: content.reduce(withPart, []) }];
  const before = aggregated ? [] : last.content;
  return [...messages.slice(0, -1), { ...last, content: content.reduce(withPart, before) }];
}

/** A message of a running turn. */
export interface StreamedMessage extends MessageData {
  /** Its index in the turn, if the stream has it. */
  index?: number;
}

/** The messages after the turn has ended. */
export function finalMessages(messages: readonly StreamedMessage[], reply: MessageData | undefined): MessageData[] {
  const plain = messages.map(({ index: _index, ...message }): MessageData => message);
  if (!reply) return plain;
  const isStreamed = plain.at(-1)?.role === 'model';
  return [...(isStreamed ? plain.slice(0, -1) : plain), reply];
}

/** Whether a tool's answer was streamed without its request, because the model does not stream requests. */
export function hasGaps(messages: readonly MessageData[], before: readonly MessageData[]): boolean {
  const parts = [...before.slice(-1), ...messages].flatMap(({ content }) => content);
  const isRequested = ({ name, ref }: { name: string; ref?: string }) =>
    parts.some(({ toolRequest }) => toolRequest?.name === name && toolRequest.ref === ref);
  return parts.some(({ toolResponse }) => toolResponse && !isRequested(toolResponse));
}

function withPart(parts: Part[], part: Part): Part[] {
  const last = parts.at(-1);
  if (isPlain(part, 'text') && last && isPlain(last, 'text')) {
    return [...parts.slice(0, -1), { text: last.text! + part.text! }];
  }
  if (isPlain(part, 'reasoning') && last && isPlain(last, 'reasoning')) {
    return [...parts.slice(0, -1), { reasoning: last.reasoning! + part.reasoning! }];
  }
  // A request is sent again when it is complete, and again, with its question, when it waits.
  const { toolRequest } = part;
  const earlier = toolRequest
    ? parts.findLastIndex(
        (each) =>
          each.toolRequest?.name === toolRequest.name &&
          each.toolRequest.ref === toolRequest.ref &&
          (part.metadata?.['interrupt'] !== undefined || each.toolRequest.partial === true),
      )
    : -1;
  return earlier < 0 ? [...parts, part] : parts.with(earlier, part);
}

/** Whether the part has this content and nothing else. */
function isPlain(part: Part, kind: 'text' | 'reasoning'): boolean {
  return part[kind] !== undefined && Object.keys(part).length === 1;
}
