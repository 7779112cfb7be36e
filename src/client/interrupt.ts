import type { AgentInterrupt, ToolRequestPart, ToolResponsePart } from './types.ts';

/** Builds the {@link AgentInterrupt} of a tool request that is waiting. */
export function toInterrupt(part: ToolRequestPart): AgentInterrupt {
  const { name, ref, input } = part.toolRequest;
  const address = { name, ...(ref !== undefined && { ref }) };
  return {
    ...address,
    input,
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
