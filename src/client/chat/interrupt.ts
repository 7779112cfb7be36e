import { isMembers } from '../../json/fault.ts';
import { toolRequestsOf } from './parts.ts';
import type { AgentInterrupt, MessageData, ToolRequestPart, ToolResponsePart } from '../types.ts';

/** The tool requests of a message that wait for the caller. In a conversation they are in the last message. */
export function interruptsOf(message: MessageData | undefined): AgentInterrupt[] {
  if (message?.role !== 'model') {
    return [];
  }
  return toolRequestsOf(message.content)
    .filter((part) => part.metadata?.interrupt)
    .map(toInterrupt);
}

/** Builds the {@link AgentInterrupt} of a waiting tool request. */
function toInterrupt(part: ToolRequestPart): AgentInterrupt {
  const { name, ref, input } = part.toolRequest;
  const address = { name, ...(ref !== undefined && { ref }) };
  // `true` marks a tool that interrupted without a question.
  const question: unknown = part.metadata?.['interrupt'];
  return {
    ...address,
    input,
    ...(isMembers(question) && { question }),
    respond: (output, metadata): ToolResponsePart => ({
      toolResponse: { ...address, output },
      metadata: { interruptResponse: metadata ?? true },
    }),
    restart: (metadata): ToolRequestPart => ({
      toolRequest: { ...address, ...(input !== undefined && { input }) },
      metadata: { resumed: metadata ?? true },
    }),
  };
}
