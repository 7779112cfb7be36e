import { createHash } from 'node:crypto';
import { Agent, request } from 'node:http';
import { genkit } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { expect, onTestFinished, test } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { serveByRouter } from '../support/http.ts';
import { hello } from '../support/stub-server.ts';

const CALLERS = 40;
const TURNS = 12;

test('a busy server answers the first turn of every caller before the tenth of any', async () => {
  const ai = genkit({});
  const { name } = scriptedModel(ai, { otherwise: busyWork });
  const running = await serveByRouter(
    [defineAgent(ai, { name: 'teller', model: name, store: new InMemorySessionStore() })],
    {
      anonymous: true,
    },
  );
  onTestFinished(running.stop);
  const connections = new Agent({ keepAlive: true, maxSockets: Infinity });
  onTestFinished(() => connections.destroy());
  /** The callers, in the order in which their turns were answered. */
  const answered: number[] = [];
  const callInTurn = async (caller: number): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn++) {
      expect(await statusOf(`${running.url}/teller`, connections)).toBe(200);
      answered.push(caller);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, caller) => callInTurn(caller)));
  const firsts = Array.from({ length: CALLERS }, (_, caller) => answered.indexOf(caller));
  const untilLastFirst = answered.slice(0, Math.max(...firsts));
  const turns = Array.from({ length: CALLERS }, (_, caller) => untilLastFirst.filter((one) => one === caller).length);
  expect(Math.max(...turns)).toBeLessThan(10);
});

/** Keeps the processor busy for about as long as the rest of a turn. */
function busyWork(): string {
  return createHash('sha256')
    .update(Buffer.alloc(1024 * 1024))
    .digest('hex');
}

function statusOf(url: string, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    sent.on('error', reject);
    sent.end(JSON.stringify({ data: hello }));
  });
}
