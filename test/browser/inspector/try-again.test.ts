/** The store after a turn was tried again, or a waiting tool was answered, in the page. */
import { defineAgent, genkit, InMemorySessionStore, z } from 'genkitx-agents';
import type { InspectorOptions } from 'genkitx-agents/inspector';
import { expect, it } from 'vitest';
import { deferred } from '../../agent/support/helpers.ts';
import { message, turn } from '../../inspector/support/sessions.ts';
import type { InspectorPage } from './inspector-page.ts';
import { describeInspector } from './setting.ts';

/** A session of a greeting and of a request to delete, whose tool waits. */
async function makeApp() {
  const ai = genkit();
  const store = new InMemorySessionStore();
  const removed: number[] = [];
  const remove = ai.defineTool(
    { name: 'remove', description: 'Deletes.', inputSchema: z.object({ id: z.number() }) },
    async ({ id }, { interrupt, resumed }) => {
      if (!resumed) interrupt({ what: `number ${id}` });
      removed.push(id);
      return 'removed';
    },
  );
  const waits = deferred();
  ai.defineModel({ name: 'echo', apiVersion: 'v2' }, async ({ messages }) => {
    const { text, toolResponse } = messages.at(-1)!.content[0]!;
    if (text === 'Slowly') await waits.promise;
    const toolRequest = { name: 'remove', ref: 'call-1', input: { id: 7 } };
    const said = toolResponse ? `It says ${String(toolResponse.output)}.` : `You said ${text}.`;
    return {
      message: { role: 'model', content: [text === 'Delete' ? { toolRequest } : { text: said }] },
      finishReason: 'stop',
    };
  });
  const agent = defineAgent(ai, { name: 'keeper', model: 'echo', tools: [remove], store });
  const chat = agent.chat({ sessionId: 's' });
  const ids: string[] = [];
  for (const text of ['Hello', 'Delete']) {
    await chat.send(text);
    ids.push(chat.snapshotId!);
  }
  const [hello, waiting] = ids as [string, string];
  /** The stored session: of each snapshot the parent, the finish reason and the last text. */
  const tree = async () => {
    const { items } = await store.listSnapshots({ sessionId: 's' });
    const words = async (snapshotId: string) =>
      (await store.getSnapshot({ snapshotId }))!.state!.messages!.at(-1)!.content[0]!.text;
    return Promise.all(
      items.map(async ({ snapshotId, parentId, finishReason }) => [parentId, finishReason, await words(snapshotId)]),
    );
  };
  const options: InspectorOptions = { store, agents: [agent], pollIntervalMs: 200 };
  return { options, removed, hello, waiting, waits, tree, agent, store };
}

async function tryAgain(inspector: InspectorPage, way: string, text?: string): Promise<void> {
  const { page } = inspector;
  await page.getByRole('radio', { name: way }).check();
  if (text !== undefined) await page.getByRole('textbox', { name: /^(Message|Reason)$/ }).fill(text);
  await inspector.button('Run').click();
}

describeInspector('trying again', (setting) => {
  it('chooses the agent of the turn if that is known; otherwise the agent must be chosen', async () => {
    const { options, waiting, agent, store } = await makeApp();
    const other = defineAgent(genkit(), { name: 'other', model: 'echo', store });
    const chat = agent.chat({ sessionId: 'owned' }, { context: { auth: { uid: 'ada' } } });
    await chat.send('Hello');
    const inspector = await setting.open({ ...options, agents: [other, agent] });
    const choice = inspector.page.getByRole('combobox', { name: 'Agent' });
    await inspector.goTo(`#/session/owned?snapshot=${chat.snapshotId}&tab=fork`);
    await choice.waitFor();
    expect(await choice.inputValue()).toBe('keeper');
    await inspector.goTo(`#/session/s?snapshot=${waiting}&tab=fork`);
    await inspector.page.getByRole('radio', { name: 'Approve remove' }).check();
    expect(await choice.inputValue()).toBe('');
    expect(await inspector.button('Run').isDisabled()).toBe(true);
    await choice.selectOption('keeper');
    expect(await inspector.button('Run').isDisabled()).toBe(false);
  });

  it('sends another message in a turn, and answers waiting tools, as branches in the store', async () => {
    const { options, removed, hello, waiting, tree } = await makeApp();
    const begun = [
      [undefined, 'stop', 'You said Hello.'],
      [hello, 'interrupted', undefined],
    ];
    expect(await tree()).toEqual(begun);
    const inspector = await setting.open(options);
    const { page } = inspector;
    const open = (id: string) => inspector.goTo(`#/session/s?snapshot=${id}&tab=fork`);

    await open(waiting);
    await tryAgain(inspector, 'In place of Turn 2', 'Wait');
    await inspector.sees('You said Wait.');
    const replayed = [...begun, [hello, 'stop', 'You said Wait.']];
    expect(await tree()).toEqual(replayed);

    await open(waiting);
    await tryAgain(inspector, 'Deny remove', 'no');
    await inspector.sees('It says no.');
    const denied = [...replayed, [waiting, 'stop', 'It says no.']];
    expect(await tree()).toEqual(denied);
    expect(removed).toEqual([]);

    await open(waiting);
    await tryAgain(inspector, 'Approve remove');
    await inspector.sees('It says removed.');
    const approved = [...denied, [waiting, 'stop', 'It says removed.']];
    expect(await tree()).toEqual(approved);
    expect(removed).toEqual([7]);
    expect(inspector.complaints).toEqual([]);

    // A tool runs once: a second approval is refused without effect.
    await open(waiting);
    await tryAgain(inspector, 'Approve remove');
    await page.getByRole('alert').getByText('The turn failed.').waitFor();
    expect(removed).toEqual([7]);
    expect(await tree()).toEqual(approved);

    // A choice for one snapshot does not apply to another without that choice: the first turn can't be replaced.
    await page.getByRole('radio', { name: 'In place of Turn 2' }).check();
    await inspector.box('Turn 1').click();
    await page.getByRole('heading', { name: 'Turn 1', exact: true }).waitFor();
    expect(await page.getByRole('radio', { name: 'After Turn 1' }).isChecked()).toBe(true);
    await expect.poll(() => page.getByRole('radio').count()).toBe(1);
  });

  it('says that the user continues from the branch', async () => {
    const { options, hello, agent } = await makeApp();
    const inspector = await setting.open(options, { place: `#/session/s?snapshot=${hello}&tab=fork` });
    await inspector.detail
      .getByText(/latest branch of the session: the user continues from it.*learned as memories/)
      .waitFor();
    await tryAgain(inspector, 'After Turn 1', 'Wait');
    await inspector.sees('You said Wait.');
    const next = await agent.loadChat({ sessionId: 's' });
    expect(next.messages.at(-1)!.content[0]!.text).toBe('You said Wait.');
  });

  it('needs a message, unless it answers a tool or runs an aborted turn again', async () => {
    const { options, waiting, store } = await makeApp();
    const state = (await store.getSnapshot({ snapshotId: waiting }))!.state!;
    const messages = [...state.messages!.slice(0, -1), message('Stopped')];
    await store.saveSnapshot('stopped', () => turn('s', { status: 'aborted', state: { messages } }));
    const inspector = await setting.open(options, { place: `#/session/s?snapshot=${waiting}&tab=fork` });
    const { page } = inspector;
    const run = inspector.button('Run');
    await run.waitFor();
    for (const [way, text, isDisabled] of [
      ['In place of Turn 2', undefined, true],
      ['In place of Turn 2', ' ', true],
      ['In place of Turn 2', 'Wait', false],
      ['After Turn 2', '', true],
      ['Approve remove', undefined, false],
      ['Deny remove', undefined, false],
    ] as const) {
      await page.getByRole('radio', { name: way }).check();
      if (text !== undefined) await page.getByRole('textbox', { name: 'Message' }).fill(text);
      expect(await run.isDisabled(), `${way}: ${text}`).toBe(isDisabled);
    }
    await inspector.goTo('#/session/s?snapshot=stopped&tab=fork');
    await tryAgain(inspector, 'After Turn 1');
    await inspector.sees('You said Stopped.');
    expect(inspector.complaints).toEqual([]);
  });

  it('keeps the draft, and a running turn, while other views are shown', async () => {
    const { options, waiting, waits, tree } = await makeApp();
    const before = await tree();
    const inspector = await setting.open(options, { place: `#/session/s?snapshot=${waiting}&tab=fork` });
    const { page } = inspector;
    const lookAround = async () => {
      await inspector.tab('Conversation').click();
      await inspector.view('Runs').click();
      await page.getByRole('heading', { name: 'Background runs' }).waitFor();
      await inspector.goTo(`#/session/s?snapshot=${waiting}&tab=fork`);
      await page.getByRole('textbox', { name: 'Message' }).waitFor();
    };
    await page.getByRole('radio', { name: 'In place of Turn 2' }).check();
    await page.getByRole('textbox', { name: 'Message' }).fill('Slowly');
    await lookAround();
    expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('Slowly');
    await inspector.button('Run').click();
    await inspector.button('Running…').waitFor();
    await lookAround();
    expect(await inspector.button('Running…').isDisabled()).toBe(true);
    waits.resolve();
    await inspector.sees('You said Slowly.');
    expect(await tree()).toHaveLength(before.length + 1);
    // The next draft is empty.
    await inspector.tab('Try again').click();
    expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('');
    expect(inspector.complaints).toEqual([]);
  });

  it('a read-only inspector shows the waiting tool without a way to answer, and its server refuses', async () => {
    const { options, waiting, tree } = await makeApp();
    const before = await tree();
    const inspector = await setting.open(
      { ...options, readOnly: true },
      { place: `#/session/s?snapshot=${waiting}&tab=fork` },
    );
    const { page } = inspector;
    await page.getByText('Read-only').waitFor();
    await inspector.detail.getByText('remove').first().waitFor();
    expect(await inspector.tab('Conversation').getAttribute('aria-selected')).toBe('true');
    expect(await inspector.tab('Try again').count()).toBe(0);
    expect(await page.getByRole('radio').count()).toBe(0);
    const status = await page.evaluate(async (snapshotId) => {
      const body = JSON.stringify({ agent: 'keeper', snapshotId, answer: 'approve' });
      const headers = { 'content-type': 'application/json' };
      return (await fetch('api/fork', { method: 'POST', headers, body })).status;
    }, waiting);
    expect(status).toBe(403);
    expect(await tree()).toEqual(before);
  });
});
