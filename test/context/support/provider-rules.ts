import type { MessageData, Part } from 'genkit';

/**
 * The strictest of the rules of Gemini's and OpenAI's interfaces about the order of messages; the rules that a request breaks. Knows nothing of
 * how the window makes a request.
 */
export function brokenRules(messages: readonly MessageData[]): string[] {
  const conversation = messages.slice(messages.findIndex(({ role }) => role !== 'system'));
  const faults: string[] = [];
  const fault = (i: number, text: string) => faults.push(`message ${i} (${conversation[i]!.role}): ${text}`);
  conversation.forEach(({ role, content }, i) => {
    const before = conversation[i - 1];
    if (content.length === 0) fault(i, 'is empty');
    if (role === 'system') fault(i, 'is not at the beginning');
    if (i === 0 && role !== 'user') fault(i, 'begins the conversation');
    if (before?.role === role) fault(i, 'has the role of the message before');
    for (const part of content) {
      if (part.text === '') fault(i, 'has an empty text');
      if (part.toolRequest && role !== 'model') fault(i, 'asks for a tool');
      if (part.toolResponse && role !== 'tool') fault(i, 'answers a tool request');
      if (!part.toolResponse && role === 'tool') fault(i, 'has something else than tool responses');
    }
    const asked = before ? addresses(before.content, 'toolRequest') : [];
    const answered = addresses(content, 'toolResponse');
    if (role === 'tool' && before?.role !== 'model') fault(i, 'answers no model message');
    if (asked.length > 0 && role !== 'tool') fault(i, 'comes between tool requests and their responses');
    if (asked.join() !== answered.join()) fault(i, `answers [${answered.join()}], not [${asked.join()}]`);
  });
  const last = conversation.at(-1);
  if (last?.role !== 'user' && last?.role !== 'tool') faults.push('the last message is not for the model to answer');
  return faults;
}

function addresses(content: readonly Part[], kind: 'toolRequest' | 'toolResponse'): string[] {
  return content
    .map((part) => part[kind])
    .filter((one) => one !== undefined)
    .map(({ name, ref }) => `${name}#${ref ?? ''}`)
    .toSorted();
}
