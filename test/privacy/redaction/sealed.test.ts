/** Originals that a turn still needs are restored, also in another process, and removed when the turn has ended. */
import { z, type Part } from 'genkit';
import { genkit } from 'genkit/beta';
import { defineAgent, FileSessionStore, recoverRuns, type SessionStore } from 'genkitx-agents';
import { redacting } from 'genkitx-agents/privacy';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { call, user } from '../../agent/support/helpers.ts';
import { worker } from '../../agent/support/worker.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { findOnDisk, openStore, optionsWith, Plants, SECRET } from './support.ts';

afterEach(() => {
  vi.useRealTimers();
});

const OTHER_SECRET = 'another secret of the tests'.padEnd(40, '.');
const init = { sessionId: 's' };

/** The agent of a process, with a tool that waits for approval. */
function payer(store: SessionStore, replies: (string | Part[])[] = []) {
  const ai = genkit({});
  const paid: unknown[] = [];
  ai.defineTool({ name: 'pay', description: 'Pays.', inputSchema: z.any() }, async (input, { interrupt, resumed }) => {
    if (!resumed) interrupt();
    paid.push(input);
    return `paid to ${input.to}`;
  });
  const scripted = scriptedModel(ai, { replies, otherwise: 'done' });
  return { paid, scripted, agent: defineAgent(ai, { name: 'payer', model: scripted.name, tools: ['pay'], store }) };
}

const payment = (to: string, amount: number): Part => ({
  toolRequest: { name: 'pay', ref: '1', input: { to, amount } },
});

async function sealsOf(folder: string, sessionId = 's'): Promise<string[]> {
  const store = new FileSessionStore(folder);
  const records = await store.readRecords({ sessionId, kind: 'privacy' });
  await store.close();
  return records.map(({ key }) => key).filter((key) => key.startsWith('sealed:'));
}

/** A process requests an approval, and ends. */
async function askForApproval(folder: string, plants: Plants, secret: string = SECRET) {
  const pay = payment(plants.text(), plants.number());
  const store = openStore(folder, { secret });
  const { agent } = payer(store, [[{ text: `For ${plants.text()}:` }, pay]]);
  const { output } = await call(agent, [`pay ${plants.text()}`], init);
  expect(output.finishReason).toBe('interrupted');
  await store.close();
  return { pay, snapshotId: output.snapshotId! };
}

describe('an approval', () => {
  test('works on the real values in another process, and nothing is sealed afterwards', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const { pay } = await askForApproval(folder, plants);
    expect(await sealsOf(folder)).toHaveLength(1);
    const { agent, paid, scripted } = payer(openStore(folder));
    const snapshot = await agent.getSnapshot(init);
    // The message that waits is in the clear, those before it are not.
    expect(JSON.stringify(snapshot?.state?.messages?.[0])).toContain('pay [PLANT_');
    expect(snapshot?.state?.messages?.at(-1)?.content[1]?.toolRequest).toEqual(pay.toolRequest);
    const { output } = await call(agent, [{ resume: { restart: [pay as never] } }], init);
    expect(output.finishReason).toBe('stop');
    expect(paid).toEqual([pay.toolRequest?.input]);
    expect(JSON.stringify(scripted.requests[0])).toContain(plants.values[0]);
    expect(await sealsOf(folder)).toEqual([]);
    expect(JSON.stringify(await agent.getSnapshot(init))).not.toContain('plant-');
    expect(findOnDisk(folder, plants.values)).toEqual([]);
  });

  test('that comes after another one is refused with the snapshot that has the result, though the values are gone', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const { pay, snapshotId } = await askForApproval(folder, plants);
    const { agent, paid } = payer(openStore(folder));
    const restart = { resume: { restart: [pay as never] } };
    // A modified input is still refused as one, and does not use up the approval.
    const forged = { resume: { restart: [payment('eve', 1) as never] } };
    expect((await call(agent, [forged], { snapshotId })).output.error?.message).toContain('modified inputs');
    const { output } = await call(agent, [restart], { snapshotId });
    expect(output.finishReason).toBe('stop');
    const { error } = (await call(agent, [restart], { snapshotId })).output;
    expect(error?.status).toBe('FAILED_PRECONDITION');
    expect(error?.message).toContain(
      `already approved, and its tools run only once. Continue from snapshot "${output.snapshotId}"`,
    );
    expect(paid).toHaveLength(1);
  });

  test('that is delayed keeps its values until it is answered', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const { pay, snapshotId } = await askForApproval(folder, plants);
    const { agent, paid } = payer(openStore(folder));
    await call(agent, ['later'], init);
    expect(await sealsOf(folder)).toHaveLength(1);
    await call(agent, [{ resume: { restart: [pay as never] } }], { snapshotId });
    expect(paid).toEqual([pay.toolRequest?.input]);
    expect(await sealsOf(folder)).toEqual([]);
  });

  test('that fails can be given again', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const { pay } = await askForApproval(folder, plants);
    const { agent, paid } = payer(openStore(folder));
    const wrong = { toolRequest: { ...pay.toolRequest!, input: { to: 'me' } } };
    const refused = await call(agent, [{ resume: { restart: [wrong as never] } }], init);
    expect(refused.output.error?.status).toBe('INVALID_ARGUMENT');
    await call(agent, [{ resume: { restart: [pay as never] } }], init);
    expect(paid).toEqual([pay.toolRequest?.input]);
  });

  test('without the secret is a typed error that names the snapshot; other sessions are read', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const { snapshotId } = await askForApproval(folder, plants);
    const other = openStore(folder, { secret: OTHER_SECRET });
    await call(payer(other).agent, ['hello'], { sessionId: 'other' });
    await expect(other.getSnapshot(init)).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining(snapshotId),
    });
    expect(await other.getSnapshot({ sessionId: 'other' })).toBeDefined();
    expect(await other.getSnapshotMetadata(init)).toMatchObject({ snapshotId });
  });

  test('outlives a rotation of the secret', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const { pay } = await askForApproval(folder, plants);
    const { agent, paid } = payer(openStore(folder, { secret: [OTHER_SECRET, SECRET] }));
    await call(agent, [{ resume: { restart: [pay as never] } }], init);
    expect(paid).toEqual([pay.toolRequest?.input]);
    expect(await sealsOf(folder)).toEqual([]);
  });

  test('a seal that is damaged, or of another snapshot, is a typed error and never a wrong value', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const { snapshotId } = await askForApproval(folder, plants);
    const raw = new FileSessionStore(folder);
    const record = (await raw.readRecords({ ...init, kind: 'privacy' })).find(({ key }) => key !== 'numbers');
    const { keyId, data } = record!.value as { keyId: string; data: string };
    const damaged = Buffer.from(data, 'base64');
    damaged[20]! ^= 1;
    await raw.writeRecord({
      ...init,
      kind: 'privacy',
      key: record!.key,
      value: { keyId, data: damaged.toString('base64') },
    });
    await expect(openStore(folder).getSnapshot({ snapshotId })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    await raw.writeRecord({ ...init, kind: 'privacy', key: record!.key, value: { keyId, data } });
    const stored = await raw.getSnapshot({ snapshotId });
    await raw.saveSnapshot('copy', () => ({ ...stored!, snapshotId: 'copy', parentId: snapshotId }));
    await expect(openStore(folder).getSnapshot({ snapshotId: 'copy' })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    await raw.close();
  });

  test('of an input that is larger than a session record', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const [first, last] = [plants.text(), plants.text()];
    const pay = payment(`${first} ${'word '.repeat(300_000)} ${last}`, 1);
    const { agent } = payer(openStore(folder), [[pay]]);
    await call(agent, ['pay'], init);
    expect((await sealsOf(folder)).length).toBeGreaterThan(3);
    const next = payer(openStore(folder));
    await call(next.agent, [{ resume: { restart: [pay as never] } }], init);
    expect(next.paid).toEqual([pay.toolRequest?.input]);
    expect(await sealsOf(folder)).toEqual([]);
    expect(findOnDisk(folder, plants.values)).toEqual([]);
  });
});

describe('a detached run', () => {
  test('whose process died is taken over with the real inputs', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const inputs = ['one', 'two', 'three'].map((text) => `${text} ${plants.text()}`);
    const owner = worker(openStore(folder));
    const messages = inputs.map((text) => ({ message: user(text) }));
    const { output } = await call(owner.agent, [messages[0]!, messages[1]!, { ...messages[2]!, detach: true }], init);
    await owner.called(1);
    expect(await sealsOf(folder)).toHaveLength(3);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 120_000 });
    const store = openStore(folder);
    const rescuer = worker(store, { answer: 'rescued' });
    expect((await recoverRuns(rescuer.ai)).runs).toMatchObject([{ outcome: 'continued' }]);
    await rescuer.settled(output.snapshotId!);
    const asked = rescuer.scripted.requests.map(({ messages: sent }) => sent.at(-1)?.content[0]?.text);
    expect(asked).toEqual(inputs);
    await vi.waitUntil(async () => (await sealsOf(folder)).length === 0);
    // Each turn after its own saw placeholders.
    expect(JSON.stringify(rescuer.scripted.requests[2]!.messages.slice(0, -1))).not.toContain('plant-');
    expect(findOnDisk(folder, plants.values)).toEqual([]);
  });

  test('whose heartbeat is written keeps its seal, and searches nothing again', async () => {
    const [folder, plants] = [temporaryFolder(), new Plants()];
    const options = optionsWith();
    const store = redacting(new FileSessionStore(folder), options);
    const rule = options.rules[0] as unknown as { chars: number };
    const owner = worker(store, { background: { heartbeatIntervalMs: 5, leaseMs: 60_000 } });
    const { output } = await call(owner.agent, [{ message: user(`go ${plants.text()}`), detach: true }], init);
    const { release } = await owner.called(1);
    const [seals, { chars }] = [await sealsOf(folder), rule];
    const beatOf = async () => (await store.getSnapshotMetadata({ snapshotId: output.snapshotId! }))?.heartbeatAt;
    const first = await beatOf();
    await vi.waitUntil(async () => (await beatOf()) !== first);
    expect(await sealsOf(folder)).toEqual(seals);
    expect(rule.chars).toBe(chars);
    release('ok');
    await owner.settled(output.snapshotId!);
    await vi.waitUntil(async () => (await sealsOf(folder)).length === 0);
    await store.close();
  });
});
