/** The operator of an agent gets the stack of a bug in the application's own code. */
import { z } from 'genkit';
import { AgentError, genkit, InMemorySessionStore } from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, it } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { catchErrorLog } from '../support/log.ts';
import { refusal } from '../support/refusal.ts';

const errorLog = catchErrorLog();

function setUp() {
  const bug = new Error('The tool has a bug.', { cause: new TypeError('x is not a function') });
  const ai = genkit({});
  const { name } = scriptedModel(ai, { otherwise: [{ toolRequest: { name: 'broken', input: {} } }] });
  const broken = ai.defineTool({ name: 'broken', description: 'Breaks.', inputSchema: z.object({}) }, async () => {
    throw bug;
  });
  const agent = ai.defineAgent({ name: 'buggy', model: name, tools: [broken], store: new InMemorySessionStore() });
  const handler = agentHandler({ buggy: agent }, { context: () => ({}) });
  const remote = remoteAgent({
    url: 'http://agents.test/buggy',
    fetch: (url, init) => handler(new Request(url as string, init)),
  });
  return { bug, agent, remote };
}

/** The log has the stacks of the error and of its cause, and the id. */
function expectInLog(bug: Error, errorId: unknown): void {
  expect(errorId).toEqual(expect.any(String));
  const log = errorLog().replaceAll(String.raw`\n`, '\n');
  expect(log).toContain(errorId);
  const linesOf = (error: unknown) => (error as Error).stack!.split('\n').slice(0, 2);
  for (const line of [...linesOf(bug), ...linesOf(bug.cause)]) expect(log).toContain(line);
}

describe("a bug in an application's tool", () => {
  it('in process is the cause of the error, with its stack and causes', async () => {
    const { agent, bug } = setUp();
    const error = await refusal(agent.chat().send('go'));
    expect(AgentError.isInstance(error)).toBe(true);
    expect(error.cause).toBe(bug);
    expect(JSON.stringify(error.response.raw)).not.toContain('stack');
  });

  it.each(['send', 'sendStream'] as const)(
    'over HTTP (%s) is in the log, with the id that the client gets',
    async (way) => {
      const { remote, bug } = setUp();
      const chat = remote.chat();
      const error = await refusal(way === 'send' ? chat.send('go') : chat.sendStream('go').response);
      const { details, message, cause } = error;
      expect(message).not.toContain('bug');
      expect(cause).toBeUndefined();
      expectInLog(bug, (details as { errorId?: unknown }).errorId);
    },
  );

  it('in the background is in the log, with the id that the snapshot has, in process and over HTTP', async () => {
    const { agent, remote, bug } = setUp();
    const task = await agent.chat().detach('go');
    const { status, error } = await agent.waitForSnapshot(task.snapshotId, { timeoutMs: 5000 });
    expect(status).toBe('failed');
    const { errorId } = error!.details as { errorId: unknown };
    expectInLog(bug, errorId);
    const seen = await remote.getSnapshot(task.snapshotId);
    expect(seen?.error?.details).toEqual({ errorId });
    expect(seen?.error?.message).not.toContain('bug');
  });
});
