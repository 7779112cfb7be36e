/** Genkit's stream manager on Firestore: a client may reconnect to another instance. */
import { FirestoreStreamManager } from '@genkit-ai/firebase/beta';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, it } from 'vitest';
import { framesOf, resultFrame, STREAM_ID, twoThenThree } from '../../../server/support/kept-turns.ts';
import { stubAgent } from '../../../server/support/stub-agent.ts';
import { done, hello } from '../../../server/support/stub-server.ts';
import { newProject, openDatabase } from '../support/database.ts';

const project = newProject();
const databases = [openDatabase(project), openDatabase(project)];

const managersOf = (collection: string) => databases.map((db) => new FirestoreStreamManager({ db, collection }));

function request(body: object, headers: Record<string, string> = {}): Request {
  return new Request('http://agents.test/a', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
    body: JSON.stringify(body),
  });
}

/** Whether the agent's text before its pause is stored. */
const isStored = async (collection: string) => {
  const { docs } = await databases[0]!.collection(collection).get();
  const chunks = docs[0]?.data()['stream'] as { chunk: string }[];
  return chunks.map(({ chunk }) => chunk).join('') === framesOf(1, 2);
};

/** The whole answer. `onBeginning` is called when its first bytes have arrived. */
async function textOf(answer: Response, onBeginning: () => void): Promise<string> {
  let text = '';
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    onBeginning();
  }
  return text;
}

// The emulator sometimes loses a write during the start of a listener. So nothing is written at that moment.
describe('a stream manager on Firestore', () => {
  it('gives the whole stream to a client that comes back to another instance, in order, while the turn runs', async () => {
    const { agent, mayEnd } = twoThenThree();
    const managers = managersOf('reconnected');
    const serving = agentHandler([agent], { anonymous: true, streamManager: managers[0]! });
    const other = agentHandler([stubAgent('a', async () => done)], { anonymous: true, streamManager: managers[1]! });
    const first = await serving(request({ data: hello }));
    await expect.poll(() => isStored('reconnected')).toBe(true);
    const second = await other(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    const whole = framesOf(1, 2, 3) + resultFrame(done);
    expect(await textOf(second, mayEnd.open)).toBe(whole);
    expect(await first.text()).toBe(whole);
    const late = await other(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    expect(await late.text()).toBe(whole);
  });

  it('continues a turn whose client has disconnected, and sends its end to a client that requests it', async () => {
    const { agent, mayEnd } = twoThenThree();
    const serving = agentHandler([agent], { anonymous: true, streamManager: managersOf('left')[0]! });
    const first = await serving(request({ data: hello }));
    await expect.poll(() => isStored('left')).toBe(true);
    await first.body?.cancel();
    const comeBack = () => serving(request({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! }));
    const again = await comeBack();
    expect(await textOf(again, mayEnd.open)).toBe(framesOf(1, 2, 3) + resultFrame(done));
    const late = await comeBack();
    expect(await late.text()).toBe(framesOf(1, 2, 3) + resultFrame(done));
    expect(agent.runs).toHaveLength(1);
  });

  it('answers 204 for an unknown stream', async () => {
    const serving = agentHandler([stubAgent('a', async () => done)], {
      anonymous: true,
      streamManager: managersOf('none')[0]!,
    });
    const answer = await serving(request({}, { [STREAM_ID]: 'unknown-stream' }));
    expect(answer.status).toBe(204);
  });
});
