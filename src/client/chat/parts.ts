import type { MessageData, Part, ToolRequestPart } from '../types.ts';

/** The text of all text parts, joined. */
export function textOf(parts: readonly Part[] = []): string {
  return parts.map((part) => part.text ?? '').join('');
}

/** Metadata of the part with the value of structured output, which an agent adds to its reply. */
export const VALUE_MARK = { structuredOutput: true };

/** The message as the session stores it. */
export function withoutValue(message: MessageData): MessageData {
  const content = message.content.filter(({ metadata }) => metadata?.['structuredOutput'] !== true);
  return content.length === message.content.length ? message : { ...message, content };
}

/** The tool request parts. */
export function toolRequestsOf(parts: readonly Part[] = []): ToolRequestPart[] {
  return parts.filter((part): part is ToolRequestPart => part.toolRequest != null);
}
