/** Genkit's reflection server over our agents, with the requests of the Dev UI. Genkit's own agents get the same requests for comparison. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ReflectionServer } from 'genkit/beta';
import { agentRuntime, genkit, InMemorySessionStore } from 'genkitx-agents';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeAgents, makers, type TestAgents } from '../support/agents.ts';
import { catchErrorLog } from '../support/log.ts';

catchErrorLog();

interface Listed {
  key: string;
  name: string;
  metadata?: { agent?: Record<string, unknown>; bidi?: boolean };
  inputSchema?: { properties?: object };
  outputSchema?: { properties?: object };
}

const say = (text: string) => ({ message: { role: 'user', content: [{ text }] } });

/** The server writes a file for the tools that look for it, where the project is. */
const home = process.cwd();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reflection-'));
  writeFileSync(join(folder, 'package.json'), '{}');
  process.chdir(folder);
});
afterAll(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true, force: true });
});

async function reflect(registry: ConstructorParameters<typeof ReflectionServer>[0]) {
  // Above all ports that `fetch` refuses, and below those that the system gives to clients.
  const port = 12_000 + Math.floor(Math.random() * 20_000);
  const server = new ReflectionServer(registry, { port, name: 'test' });
  await server.start();
  const url = `http://127.0.0.1:${server.runtimeId.split('-')[1]}/api`;
  const post = (path: string, body: object) =>
    fetch(`${url}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  return {
    list: async () => (await (await fetch(`${url}/actions`)).json()) as Record<string, Listed>,
    run: async (key: string, input: unknown, init?: unknown) => (await post('runAction', { key, input, init })).json(),
    stream: (key: string, input: unknown, init: unknown) => post('runAction?stream=true', { key, input, init }),
    cancel: async (traceId: string) => (await post('cancelAction', { traceId })).status,
    stop: async () => {
      const stopped = server.stop();
      // It waits for the connections that are kept alive.
      (server as unknown as { server?: { closeAllConnections(): void } }).server?.closeAllConnections();
      await stopped;
    },
  };
}

describe.each(makers)('the reflection server over $name', (maker) => {
  let made: TestAgents;
  let tools: Awaited<ReturnType<typeof reflect>>;

  beforeEach(async () => {
    made = makeAgents(maker);
    tools = await reflect(made.agents.chatty!.__registry!);
  });
  afterEach(() => tools.stop());

  it('lists each agent and its two further actions, with the metadata that the Dev UI reads', async () => {
    const listed = await tools.list();
    for (const name of Object.keys(made.agents)) {
      const agent = listed[`/agent/${name}`]!;
      expect(agent.name).toBe(name);
      expect(agent.inputSchema?.properties).toMatchObject({ message: {}, resume: {}, detach: {} });
      expect(agent.outputSchema?.properties).toMatchObject({ snapshotId: {}, message: {}, artifacts: {} });
      expect(agent.metadata?.bidi).toBe(true);
      const isClientManaged = ['forgetful', 'clientCounter'].includes(name);
      expect(agent.metadata?.agent).toMatchObject({
        stateManagement: isClientManaged ? 'client' : 'server',
        abortable: !isClientManaged,
      });
      expect(listed[`/agent-snapshot/${name}`]?.inputSchema?.properties).toMatchObject({
        snapshotId: {},
        sessionId: {},
      });
      expect(listed[`/agent-abort/${name}`]?.inputSchema?.properties).toMatchObject({ snapshotId: {} });
    }
    expect(listed['/agent/counter']?.metadata?.agent?.stateSchema).toMatchObject({
      type: 'object',
      properties: { count: { type: 'number' }, label: { type: 'string' } },
    });
  });

  it('runs turns, streamed and not, and the next continues from the snapshot of the one before', async () => {
    const response = await tools.stream('/agent/chatty', say('hello'), { sessionId: 'S' });
    const lines = (await response.text()).trim().split('\n');
    const chunks = lines
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { modelChunk?: { content: { text: string }[] } });
    const { result, telemetry } = JSON.parse(lines.at(-1)!) as {
      result: Record<string, string>;
      telemetry: { traceId: string };
    };
    expect(chunks.map(({ modelChunk }) => modelChunk?.content[0]?.text ?? '').join('')).toBe('#1 You said: hello');
    expect(result).toMatchObject({ sessionId: 'S', finishReason: 'stop' });
    expect(response.headers.get('x-genkit-trace-id')).toBe(telemetry.traceId);
    const next = await tools.run('/agent/chatty', say('again'), { snapshotId: result.snapshotId });
    expect(next.result.message.content).toEqual([{ text: '#2 You said: again' }]);
    const read = await tools.run('/agent-snapshot/chatty', { sessionId: 'S' });
    expect(read.result).toMatchObject({ snapshotId: next.result.snapshotId, parentId: result.snapshotId });
    expect(read.result.state.messages).toHaveLength(4);
  });

  it('reports a failed turn, and an invalid call', async () => {
    const failed = await tools.run('/agent/counter', say('crash boom'), {});
    expect(failed.result).toMatchObject({ finishReason: 'failed', error: { status: 'INTERNAL' } });
    const refused = await tools.run('/agent/chatty', { message: 7 }, {});
    expect(refused.error.message).toContain('INVALID_ARGUMENT');
  });

  it('stops a background run by the abort action', async () => {
    const { result } = await tools.run('/agent/slow', { ...say('go'), detach: true }, {});
    expect(result.finishReason).toBe('detached');
    await made.controls.slowStarted.opened;
    const { result: aborted } = await tools.run('/agent-abort/slow', { snapshotId: result.snapshotId });
    expect(aborted).toEqual({ snapshotId: result.snapshotId, status: 'pending' });
    const { result: snapshot } = await tools.run('/agent-snapshot/slow', { snapshotId: result.snapshotId });
    expect(snapshot.status).toBe('aborted');
    made.controls.slowMayEnd.open();
  });

  if (maker.stops) {
    // Genkit's own continues to its end.
    it('stops a turn that its user cancels', async () => {
      const response = await tools.stream('/agent/slow', say('go'), { sessionId: 'S' });
      await made.controls.slowStarted.opened;
      expect(await tools.cancel(response.headers.get('x-genkit-trace-id')!)).toBe(200);
      await made.controls.slowStopped.opened;
      made.controls.slowMayEnd.open();
      expect(await response.text()).toMatch(/aborted|cancelled/i);
      expect((await tools.run('/agent-snapshot/slow', { sessionId: 'S' })).result?.status).not.toBe('completed');
    });
  }
});

it('the reflection server lists and runs the session actions of the runtime', async () => {
  const ai = genkit({ plugins: [agentRuntime({ store: new InMemorySessionStore() })] });
  ai.defineCustomAgent({ name: 'keeper' }, async (session) => {
    await session.run(async () => {});
    return {};
  });
  const tools = await reflect(ai.registry);
  await tools.run('/agent/keeper', say('hello'), { sessionId: 'S' });
  const keys = Object.keys(await tools.list()).filter((key) => key.endsWith('/listSessions'));
  expect(keys).toHaveLength(1);
  const { result } = await tools.run(keys[0]!, {});
  expect(result.items).toMatchObject([{ sessionId: 'S' }]);
  await tools.stop();
});
