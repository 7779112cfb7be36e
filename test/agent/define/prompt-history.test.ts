import type { MessageData } from 'genkit';
import { describe, expect, it } from 'vitest';
import { PlacedHistory } from '../../../src/agent/generate/prompt-history.ts';

const said = (text: string, more: Partial<MessageData> = {}): MessageData => ({
  role: 'user',
  content: [{ text }],
  ...more,
});
const HISTORY: readonly MessageData[] = [
  said('one'),
  said('two', { role: 'model', metadata: { seen: true } }),
  said('tagged as a prompt tags its own', { metadata: { agentPreamble: true } }),
  said('four', { role: 'model', content: [{ text: 'a' }, { toolRequest: { name: 't', input: { deep: [1] } } }] }),
  said('five'),
];
const SYSTEM: MessageData = { role: 'system', content: [{ text: 'Be short.' }] };

/** The history after a prompt placed it behind its system message, and Genkit copied the messages. */
function sent(isOpaque: boolean): { placed: PlacedHistory; messages: MessageData[] } {
  const placed = new PlacedHistory(HISTORY);
  const toSend = placed.toSend([SYSTEM, ...placed.toPlace(isOpaque)]) as MessageData[];
  return { placed, messages: toSend.map((message) => ({ ...message, content: [...message.content] })) };
}

describe.each([
  ['placed in one', true],
  ['placed message by message', false],
])('a history %s', (_name, isOpaque) => {
  it('is sent in copies, without a mark, after the prompt’s own, which is marked', () => {
    const { messages } = sent(isOpaque);
    expect(messages).toEqual([{ ...SYSTEM, metadata: { agentPreamble: true } }, ...HISTORY]);
    for (const [i, message] of HISTORY.entries()) {
      expect(messages[i + 1]!.content[0], `message ${i}`).not.toBe(message.content[0]);
    }
  });

  it('is the session’s own object again when unchanged', () => {
    const { placed, messages } = sent(isOpaque);
    const conversation = placed.conversationOf(messages);
    expect(conversation).toHaveLength(HISTORY.length);
    for (const [i, message] of conversation.entries()) expect(message, `message ${i}`).toBe(HISTORY[i]);
  });

  it('keeps omitted, added, moved and changed messages', () => {
    const { placed, messages } = sent(isOpaque);
    const [system, one, two, tagged, four, five] = messages as [
      MessageData,
      MessageData,
      MessageData,
      MessageData,
      MessageData,
      MessageData,
    ];
    const summary = said('a summary');
    const changed = { ...four, content: [four.content[0]!, { text: 'b' }] };
    const conversation = placed.conversationOf([system, summary, five, tagged, changed, one]);
    expect(conversation).toEqual([
      summary,
      HISTORY[4],
      HISTORY[2],
      { ...HISTORY[3], content: [{ text: 'a' }, { text: 'b' }] },
      HISTORY[0],
    ]);
    expect(conversation[1]).toBe(HISTORY[4]);
    expect(placed.conversationOf([two])).toEqual([HISTORY[1]]);
  });

  it('has no output format instructions of Genkit, but those that the user wrote', () => {
    const { placed, messages } = sent(isOpaque);
    const words = { text: 'Answer in JSON.', metadata: { purpose: 'output' } };
    const last = { ...messages.at(-1)!, content: [...messages.at(-1)!.content, words] };
    expect(placed.conversationOf([...messages.slice(0, -1), last])).toEqual(HISTORY);
    const found = { text: 'what was found' };
    const more = { ...last, content: [found, ...last.content] };
    expect(placed.conversationOf([more])).toEqual([{ ...HISTORY[4], content: [found, { text: 'five' }] }]);
  });

  it('is the same by value when middleware copied all of it', () => {
    const { placed, messages } = sent(isOpaque);
    const copies = structuredClone(
      messages.filter((message) => message.content[0]!.text !== HISTORY[2]!.content[0]!.text),
    );
    expect(placed.conversationOf(copies)).toEqual(HISTORY.filter((_message, i) => i !== 2));
  });
});

it('the prompt’s own messages are sent in one shape, however they were made: Genkit is slow with messages of many', () => {
  const { role, content } = SYSTEM;
  const made: MessageData[] = [
    { role, content },
    { content, role },
    { metadata: { a: 1 }, role, content },
    { content, metadata: {}, role },
  ];
  const shapes = new PlacedHistory([]).toSend(made).map((message) => Object.keys(message).join());
  expect(new Set(shapes)).toEqual(new Set(['role,content,metadata']));
});
