/** A server whose answers are malformed anywhere: each call of the client succeeds with valid values, or fails typed. */
import * as fc from 'fast-check';
import { AgentError, remoteAgent, type AgentChat, type AgentResponse, type AgentSnapshot } from 'genkitx-agents/client';
import { describe, expect, it } from 'vitest';
import { random } from '../../support/scale.ts';
import { mutate } from '../support/mutate.ts';

const request = { toolRequest: { name: 'refund', ref: 'r', input: { id: 1 } }, metadata: { interrupt: { amount: 5 } } };
const reply = { role: 'model', content: [{ text: 'hi' }, { reasoning: 'so' }, { data: { a: 1 } }, request] };
const state = {
  sessionId: 's',
  messages: [{ role: 'user', content: [{ text: 'go' }] }, reply],
  artifacts: [{ name: 'note', parts: [{ text: 'x' }] }],
  custom: { count: 1 },
};
const chunks = [
  { modelChunk: { index: 0, content: [{ text: 'hi' }, request] } },
  { artifact: state.artifacts[0] },
  { customPatch: [{ op: 'replace', path: '', value: { count: 1 } }] },
  { turnEnd: { snapshotId: 't', finishReason: 'interrupted' } },
];
const turn = {
  result: {
    message: reply,
    snapshotId: 't',
    sessionId: 's',
    finishReason: 'interrupted',
    artifacts: state.artifacts,
    usage: { inputTokens: 1 },
    error: { status: 'INTERNAL', message: 'none' },
    state,
  },
};
const snapshot = {
  result: {
    snapshotId: 't',
    sessionId: 's',
    parentId: 'p',
    createdAt: '2026-01-01T00:00:00.000Z',
    status: 'completed',
    finishReason: 'stop',
    state,
  },
};
const aborted = { result: { snapshotId: 't', status: 'pending' } };
const valid = { turn, chunks, snapshot, aborted };

/** An agent whose server answers these. */
function agentWith(answers: typeof valid) {
  const send = async (address: unknown, init: RequestInit) => {
    if (String(address).endsWith('/abort')) return Response.json(answers.aborted);
    if (String(address).endsWith('/getSnapshot')) return Response.json(answers.snapshot);
    const { detach } = (JSON.parse(init.body as string) as { data: { detach?: boolean } }).data;
    if (detach) return Response.json(answers.turn);
    const { chunks: sent } = answers;
    const frames = [...(Array.isArray(sent) ? sent.map((message: unknown) => ({ message })) : [sent]), answers.turn];
    const text = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('');
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } });
  };
  return remoteAgent({ url: 'http://agents.test/a', fetch: send as typeof fetch });
}

/** Reads every value that the client computes. */
function readResponse(response: AgentResponse): void {
  const { text, reasoning, messages, artifacts, interrupts, toolRequests } = response;
  expect([typeof text, typeof reasoning]).toEqual(['string', 'string']);
  void [response.media, response.data, response.output, response.usage, response.finishReason, response.finishMessage];
  readLists({ messages, artifacts });
  for (const { name } of toolRequests.map((part) => part.toolRequest)) void name;
  for (const interrupt of interrupts) void [interrupt.restart(), interrupt.respond('ok'), interrupt.question];
}

function readLists({ messages, artifacts }: Pick<AgentChat, 'messages' | 'artifacts'>): void {
  for (const { content } of messages) for (const part of content) void [part.text, part.toolRequest?.name];
  for (const { name, parts } of artifacts) void [name, parts];
}

function readSnapshot(read: AgentSnapshot | undefined): void {
  for (const interrupt of read?.interrupts ?? []) void interrupt.restart();
  readLists({ messages: read?.state?.messages ?? [], artifacts: read?.state?.artifacts ?? [] });
  expect(typeof (read?.status ?? '')).toBe('string');
}

const CALLS: Record<string, (agent: ReturnType<typeof remoteAgent>) => Promise<void>> = {
  send: async (agent) => {
    const chat = agent.chat();
    const running = chat.sendStream('go');
    running.response.catch(() => {});
    for await (const chunk of running.stream) {
      void [chunk.text, chunk.reasoning, chunk.output, chunk.media, chunk.toolRequests, chunk.custom];
    }
    readResponse(await running.response);
    void chat.interrupts;
    readLists(chat);
  },
  detach: async (agent) => {
    const task = await agent.chat().detach('go');
    readSnapshot(await task.wait({ intervalMs: 0, timeoutMs: 100 }));
    await task.abort();
  },
  loadChat: async (agent) => {
    const chat = await agent.loadChat({ snapshotId: 't' });
    void [chat.interrupts, chat.state, chat.sessionId];
    readLists(chat);
  },
  getSnapshot: async (agent) => readSnapshot(await agent.getSnapshot('t')),
  waitForSnapshot: async (agent) => readSnapshot(await agent.waitForSnapshot('t', { timeoutMs: 100 })),
  abort: async (agent) => expect(typeof ((await agent.abort('t')) ?? '')).toBe('string'),
};

const WRONG = [null, undefined, 5, -1, '', 'x', true, [], {}, [null], [5], [[]], [{}], { a: null }];

describe('malformed answers', () => {
  it.each(Object.keys(CALLS))('%s succeeds on the valid ones', async (name) => {
    await CALLS[name]!(agentWith(valid));
  });

  it('fail with a typed error of the client wherever they are malformed', async () => {
    const cases = fc.asyncProperty(
      fc.constantFrom(...Object.keys(CALLS)),
      fc.array(fc.nat(7), { maxLength: 7 }),
      fc.constantFrom(...WRONG),
      async (name, path, by) => {
        try {
          await CALLS[name]!(agentWith(mutate(valid, path, by) as typeof valid));
        } catch (error) {
          if (!AgentError.isInstance(error)) throw error;
          expect(error.message).toMatch(/^[A-Z].*\.$/);
          expect(error.message).not.toMatch(/undefined|null|not a function|iterable|Cannot/);
        }
      },
    );
    await fc.assert(cases, random(400, 20_000));
  });
});
