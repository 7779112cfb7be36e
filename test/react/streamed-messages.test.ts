import type { MessageData, Part } from 'genkitx-agents/client';
import { expect, it } from 'vitest';
import { finalMessages, hasGaps, withChunk, type StreamedMessage } from '../../src/react/streamed-messages.ts';

const streamed = (...chunks: { role?: MessageData['role']; index?: number; content: Part[]; aggregated?: boolean }[]) =>
  finalMessages(
    chunks.reduce<StreamedMessage[]>((so, modelChunk) => withChunk(so, { modelChunk }), []),
    undefined,
  );
const request = (more: object = {}) => ({ toolRequest: { name: 'find', ref: '1', input: { id: 7 } }, ...more });

it('joins parts of one message, and begins a message at a new role or index', () => {
  expect(
    streamed(
      { content: [{ reasoning: 'Hm' }] },
      { content: [{ reasoning: 'm.' }, { text: 'Let ' }] },
      { content: [{ text: 'me ' }, { text: 'look.', metadata: { bold: true } }, request()] },
      { role: 'tool', content: [{ toolResponse: { name: 'find', ref: '1', output: 'it' } }] },
      { index: 2, content: [{ text: 'Found' }] },
      { index: 2, content: [{ text: '.' }] },
      { index: 3, content: [{ text: 'Bye' }] },
    ),
  ).toEqual([
    {
      role: 'model',
      content: [{ reasoning: 'Hmm.' }, { text: 'Let me ' }, { text: 'look.', metadata: { bold: true } }, request()],
    },
    { role: 'tool', content: [{ toolResponse: { name: 'find', ref: '1', output: 'it' } }] },
    { role: 'model', content: [{ text: 'Found.' }] },
    { role: 'model', content: [{ text: 'Bye' }] },
  ]);
});

it('has a tool request once, though it is streamed in parts and again with its question', () => {
  const partial = { toolRequest: { name: 'find', ref: '1', partial: true } };
  const waits = request({ metadata: { interrupt: { amount: 1 } } });
  expect(streamed({ content: [partial] }, { content: [request()] }, { content: [waits] })).toEqual([
    { role: 'model', content: [waits] },
  ]);
});

it('replaces earlier content by aggregated content', () => {
  expect(streamed({ content: [{ text: 'On' }] }, { content: [{ text: 'Once' }], aggregated: true })).toEqual([
    { role: 'model', content: [{ text: 'Once' }] },
  ]);
});

it('detects a tool’s answer without its request', () => {
  const answer: MessageData = { role: 'tool', content: [{ toolResponse: { name: 'find', ref: '1', output: 1 } }] };
  const asks: MessageData = { role: 'model', content: [request()] };
  expect(hasGaps([answer], [])).toBe(true);
  expect(hasGaps([answer], [asks])).toBe(false);
  expect(hasGaps([asks, answer], [])).toBe(false);
});
