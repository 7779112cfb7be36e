/** The strategy `sessionMemories`: what was learned from a session stands in place of the messages it was learned from. */
import { contextWindow, sessionMemories } from 'genkitx-agents/context';
import { describe, expect, test, vi } from 'vitest';
import { contextReportOf } from '../../context/support/context-reports.ts';
import { ADA, agentWithMemory, linesOf, textsOf } from './support.ts';

const likes = ({ messages }: { messages: readonly { content: { text?: string }[] }[] }) =>
  messages.flatMap(({ content }) =>
    content.flatMap(({ text = '' }) => (text.startsWith('I like') ? [text.replace('I like', 'The user likes')] : [])),
  );

function setUp(everyTurns = 3) {
  return agentWithMemory({
    memory: { model: undefined, extract: likes, generate: { everyTurns, onIdleMs: false } },
    attach: { placement: { memories: 'tool' }, tools: [] },
    context: contextWindow({ history: [sessionMemories({ keepTurns: 1 })] }),
  });
}

describe('sessionMemories', () => {
  test('sends the facts in place of the messages they cover, and the messages that came after', async () => {
    const { memories, said, chat, sessions } = setUp();
    const talk = chat();
    for (const text of ['I like tea.', 'How are you?', 'I like rum.']) await talk.send(text);
    await vi.waitFor(async () => expect(await textsOf(memories)).toHaveLength(2));
    await talk.send('What is next?');
    const lines = linesOf(said.requests.at(-1)!);
    expect(lines[1]).toContain('| - The user likes tea.\n| - The user likes rum.');
    const sent = lines.slice(1).join('\n');
    expect(sent).not.toContain('How are you?');
    // The last turn before the current one stays.
    expect(sent).toContain('I like rum.');
    const report = await contextReportOf(sessions, talk.snapshotId!);
    expect(report).toMatchObject({ summary: { to: 4 }, sent: [[4, 6]], dropped: [] });
    expect(talk.messages).toHaveLength(8);
  });

  test('sends everything while nothing was learned', async () => {
    const { said, chat } = setUp(100);
    const talk = chat();
    for (const text of ['I like tea.', 'How are you?', 'I like rum.']) await talk.send(text);
    expect(linesOf(said.requests.at(-1)!)).toHaveLength(6);
  });

  test('takes no facts of another branch', async () => {
    const { memories, agent, said, chat } = setUp(2);
    const talk = chat();
    await talk.send('How are you?');
    const fork = talk.snapshotId!;
    await talk.send('I like tea.');
    await vi.waitFor(async () => expect(await textsOf(memories)).toHaveLength(1));
    const other = agent.chat({ snapshotId: fork }, { context: ADA });
    await other.send('No.');
    await other.send('What is next?');
    expect(JSON.stringify(said.requests.at(-1))).not.toContain('The user likes tea.');
    expect(linesOf(said.requests.at(-1)!).join('\n')).toContain('How are you?');
  });
});
