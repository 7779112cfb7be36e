/** Genkit's stream manager on Firestore: a client may reconnect to another instance. */
import { FirestoreStreamManager } from '@genkit-ai/firebase/beta';
import { agentHandler } from 'genkitx-agents/server';
import { afterAll, describe, expect, it } from 'vitest';
import { framesOf, resultFrame, STREAM_ID, twoThenThree } from '../../server/support/kept-turns.ts';
import { stubAgent } from '../../server/support/stub-agent.ts';
import { done, hello } from '../../server/support/stub-server.ts';
import { newProject, openDatabase } from './support/database.ts';

const project = newProject();
const databases = [openDatabase(project), openDatabase(project)];
afterAll(async () => void (await Promise.all(databases.map((db) => db.terminate()))));

const managers = databases.map((db) => new FirestoreStreamManager({ db, collection: 'streams' }));

function request(body: object, headers: Record<string, string> = {}): Request {
  return new Request('http://agents.test/a', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify(body),
  });
}

describe('a stream manager on Firestore', () => {
  it('gives the whole stream to a client that comes back to another instance, in order, while the turn runs', async () => {
    const { agent, mayEnd } = twoThenThree();
    const serving = agentHandler([agent], { anonymous: true, streamManager: managers[0]! });
    const other = agentHandler([stubAgent('a', async () => done)], { anonymous: true, streamManager: managers[1]! });
    const first = await serving(request({ data: hello }));
    const second = await other(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    mayEnd.open();
    const whole = framesOf(1, 2, 3) + resultFrame(done);
    expect(await first.text()).toBe(whole);
    expect(await second.text()).toBe(whole);
    const late = await other(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    expect(await late.text()).toBe(whole);
  });

  it('lets a turn go on whose client has gone, and sends its end to a client that asks for it', async () => {
    const { agent, started, mayEnd } = twoThenThree();
    const serving = agentHandler([agent], { anonymous: true, streamManager: managers[0]! });
    const first = await serving(request({ data: hello }));
    await started.opened;
    await first.body?.cancel();
    mayEnd.open();
    const again = await serving(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    expect(await again.text()).toBe(framesOf(1, 2, 3) + resultFrame(done));
    expect(agent.runs).toHaveLength(1);
  });

  it('answers 204 for an unknown stream', async () => {
    const serving = agentHandler([stubAgent('a', async () => done)], { anonymous: true, streamManager: managers[0]! });
    const answer = await serving(request({}, { [STREAM_ID]: 'unknown-stream' }));
    expect(answer.status).toBe(204);
  });
});
