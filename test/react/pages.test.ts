/** `useAgent` and `useChat` over `agentTransport`, in a real browser and in React's strict mode. */
import { expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { remoteAgent } from 'genkitx-agents/client';
import { gate } from '../server/support/agents.ts';
import { scale } from '../support/scale.ts';
import { describePages, inPage } from './support/pages.ts';
import { STORY, WORDS } from './support/teller.ts';

const lines = (page: Page) => page.locator('main p').allTextContents();
const expectLines = (page: Page, wanted: string[]) => expect.poll(() => lines(page)).toEqual(wanted);
const settled = (page: Page) => page.locator('main[data-status=ready]').waitFor({ state: 'attached' });
/** The text before the reply waits. */
const BEGUN = WORDS.slice(0, 2).join('');

describePages('useAgent', ['React 19', 'React 18'], (pages) => {
  it('shows the sent message at once and the reply as it arrives, without warnings', async () => {
    const page = await pages.open('?page=agent&url');
    await settled(page);
    await inPage(page, ({ agent }) => agent.send('hello'));
    await expectLines(page, ['user: hello', `model: ${STORY}`]);
    expect(await inPage(page, ({ seen }) => seen[0])).toBe('user: hello');
    expect(pages.complaints).toEqual([]);
  });

  it('shows the given snapshot, and the latest when none is given', async () => {
    const page = await pages.open('?page=agent');
    const reply = `model: ${STORY}`;
    await inPage(page, ({ agent }) => agent.send('one'));
    const first = await inPage(page, ({ agent }) => agent.snapshotId!);
    await inPage(page, ({ agent }) => agent.send('two'));
    await expectLines(page, ['user: one', reply, 'user: two', reply]);
    await inPage(page, ({ show }, snapshotId) => show(snapshotId), first);
    await expectLines(page, ['user: one', reply]);
    await inPage(page, ({ show }) => show(undefined));
    await expectLines(page, ['user: one', reply, 'user: two', reply]);
  });

  it('shows an unsent message to its user only, if the storage key names the user', async () => {
    const page = await pages.open(`?page=agent&session=shared-${Math.random()}`);
    await settled(page);
    await inPage(page, ({ signIn }) => signIn('ada'));
    const address = '**/api/teller';
    await page.route(address, (route) => route.abort());
    await inPage(page, ({ agent }) => agent.send('not sent'));
    await expectLines(page, ['user: not sent']);
    await page.unroute(address);
    await inPage(page, ({ signIn }) => signIn('bob'));
    await expectLines(page, []);
    await inPage(page, ({ agent }) => agent.retry());
    expect(pages.teller.asked).not.toContain('not sent');
    await inPage(page, ({ signIn }) => signIn('ada'));
    await expectLines(page, ['user: not sent']);
  });

  it('loses and repeats no chunk when the connection breaks after any chunk', async () => {
    const page = await pages.open('?page=agent');
    const texts = WORDS.map((_, index) => `model: ${WORDS.slice(0, index + 1).join('')}`);
    for (let count = 0; count <= WORDS.length + 1; count++) {
      await inPage(page, ({ seen }) => void (seen.length = 0));
      pages.teller.cutAfterChunks(count);
      const asked = `after ${count}`;
      await inPage(page, ({ agent }, text) => agent.send(text), asked);
      await settled(page);
      const shown = await lines(page);
      expect(shown.slice(count * 2)).toEqual([`user: ${asked}`, `model: ${STORY}`]);
      const seen = await inPage(page, (window) => window.seen);
      expect([`user: ${asked}`, ...texts], asked).toEqual(expect.arrayContaining(seen));
    }
    expect(pages.teller.asked.filter((text) => text.startsWith('after '))).toHaveLength(WORDS.length + 2);
  });

  it('continues after a reload and in a second tab, without a second run', async () => {
    const sessionId = `reload-${Math.random()}`;
    const { teller } = pages;
    await remoteAgent({ url: teller.url }).chat({ sessionId }).send('hello');
    [teller.waits, teller.mayEnd] = [gate(), gate()];
    const before = teller.asked.length;
    const page = await pages.open(`?page=agent&session=${sessionId}`);
    await settled(page);
    const tab = await pages.open(`?page=agent&session=${sessionId}`, page);
    await settled(tab);
    await inPage(page, ({ agent }) => void agent.send('wait'));
    const running = ['user: hello', `model: ${STORY}`, 'user: wait', `model: ${BEGUN}`];
    await expectLines(page, running);
    await expectLines(tab, running);
    await page.reload();
    await expectLines(page, running);
    teller.mayEnd.open();
    for (const each of [page, tab]) {
      await expectLines(each, [...running.slice(0, 3), `model: ${STORY}`]);
      await settled(each);
    }
    expect(teller.asked.slice(before)).toEqual(['wait']);
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
    expect(pages.complaints).toEqual([]);
  });

  it('stops a background run, shows its stored part as stopped, and continues from there', async () => {
    const sessionId = `background-${Math.random()}`;
    const { teller } = pages;
    [teller.waits, teller.mayEnd] = [gate(), gate()];
    const task = await remoteAgent({ url: teller.url }).chat({ sessionId }).detach('wait');
    await teller.waits.opened;
    const page = await pages.open(`?page=agent&session=${sessionId}`);
    await page.locator('main[data-status=submitted]').waitFor({ state: 'attached' });
    expect(await inPage(page, ({ agent }) => agent.isBusy)).toBe(true);
    await inPage(page, ({ agent }) => agent.stop());
    await settled(page);
    const view = await inPage(page, ({ agent }) => {
      const { isBusy, isStopped, snapshotId, error, interrupts } = agent;
      return { isBusy, isStopped, snapshotId, error, interrupts };
    });
    const { snapshotId } = task;
    expect(view).toEqual({ isBusy: false, isStopped: true, snapshotId, interrupts: [] });
    const stored = await teller.store.getSnapshot({ sessionId });
    expect(stored).toMatchObject({ snapshotId, status: 'aborted' });
    const kept = stored!.state!.messages!.map(({ role, content }) => `${role}: ${content[0]?.text}`);
    // It has the part of the reply that existed when the run was sent to the background.
    expect(kept[0]).toBe('user: wait');
    await expectLines(page, kept);
    await inPage(page, ({ agent }) => agent.send('hello'));
    await expectLines(page, [...kept, 'user: hello', `model: ${STORY}`]);
    expect(await inPage(page, ({ agent }) => agent.isStopped)).toBe(false);
    expect(pages.complaints).toEqual([]);
  });

  const mounts = scale(20, 1000);
  it(`soak: leaves no listener and no request after ${mounts} mounts`, async () => {
    const sessionId = `mounts-${Math.random()}`;
    await remoteAgent({ url: pages.teller.url }).chat({ sessionId }).send('hello');
    const page = await pages.open(`?page=agent&session=${sessionId}`);
    await settled(page);
    const left = await page.evaluate(async (times) => {
      const test = window as unknown as { mountOften: (times: number) => Promise<void> };
      const counts = { storage: 0, added: 0, requests: 0 };
      const fetch = window.fetch.bind(window);
      const methods = window as unknown as Record<string, (...all: unknown[]) => void>;
      for (const [name, by] of [
        ['addEventListener', 1],
        ['removeEventListener', -1],
      ] as const) {
        const own = methods[name]!;
        methods[name] = (type, ...more) => {
          if (type === 'storage') counts.storage += by;
          if (type === 'storage' && by > 0) counts.added += 1;
          own.call(window, type, ...more);
        };
      }
      window.fetch = (...all) => {
        counts.requests += 1;
        return fetch(...all).finally(() => (counts.requests -= 1));
      };
      await test.mountOften(times);
      while (counts.requests > 0) await new Promise((resolve) => setTimeout(resolve, 10));
      return counts;
    }, mounts);
    // In strict mode each mount is made twice.
    expect(left).toEqual({ storage: 0, added: 2 * mounts, requests: 0 });
    expect(pages.complaints).toEqual([]);
  });
});

describePages('useChat over agentTransport', ['React 19'], (pages) => {
  const open = (more = '', session = `chat-${Math.random()}`) => pages.open(`?page=chat&session=${session}${more}`);
  const send = (page: Page, text: string) =>
    inPage(page, ({ chat }, said) => void chat.sendMessage({ text: said }), text);
  /** Lets `wait` wait again. */
  const renew = () => ([pages.teller.waits, pages.teller.mayEnd] = [gate(), gate()]);

  it('streams, and continues with the conversation', async () => {
    const page = await open();
    await send(page, 'hello');
    await expectLines(page, ['user: hello', `assistant: ${STORY}`]);
    await settled(page);
    await send(page, 'again');
    await expectLines(page, ['user: hello', `assistant: ${STORY}`, 'user: again', `assistant: ${STORY}`]);
    await settled(page);
    expect(await inPage(page, ({ chat }) => chat.messages.at(-1)?.metadata)).toMatchObject({
      snapshotId: expect.any(String),
    });
    expect(pages.complaints).toEqual([]);
  });

  it('shows tools with their results', async () => {
    const page = await open();
    await send(page, 'weather');
    await expectLines(page, [
      'user: weather',
      'assistant: tool-weather output-available',
      'assistant: tool: "rain in Oslo"',
    ]);
    const part = await inPage(page, ({ chat }) => chat.messages[1]!.parts.find(({ type }) => type === 'tool-weather'));
    expect(part).toMatchObject({ output: 'rain in Oslo', state: 'output-available' });
  });

  it.each([true, false])(
    'asks for approval, also after a reload, and continues by itself (approved: %s)',
    async (approved) => {
      const session = `approval-${approved}-${Math.random()}`;
      const first = await open('', session);
      await send(first, 'delete');
      await expectLines(first, ['user: delete', 'assistant: tool-remove approval-requested']);
      await settled(first);
      const page = await open('&load', session);
      await expectLines(page, ['user: delete', 'assistant: tool-remove approval-requested']);
      const removed = pages.teller.removed.length;
      const asked = await inPage(page, ({ chat }) => {
        const part = chat.messages[1]!.parts.find(({ type }) => type === 'tool-remove');
        return (part as { approval?: { id: string; descriptor?: unknown } }).approval;
      });
      expect(asked?.descriptor).toEqual({ what: 'number 7' });
      await inPage(page, ({ chat }, answer) => void chat.addToolApprovalResponse(answer), { id: asked!.id, approved });
      const outcome = approved ? 'output-available' : 'output-denied';
      const said = approved ? 'tool: "removed"' : 'tool: "The user did not allow this."';
      await expectLines(page, ['user: delete', `assistant: tool-remove ${outcome}`, `assistant: ${said}`]);
      expect(pages.teller.removed.length - removed).toBe(approved ? 1 : 0);
      expect(pages.complaints).toEqual([]);
    },
  );

  it.each([{ output: 'kept' }, { state: 'output-error', errorText: 'no key' }] as const)(
    'asks for the output of a tool, also after a reload, and continues by itself with what the user gives: %j',
    async (given) => {
      const session = `output-${Math.random()}`;
      const first = await open('&outputs', session);
      await send(first, 'delete');
      const asked = ['user: delete', 'assistant: tool-remove input-available'];
      await expectLines(first, asked);
      await settled(first);
      const page = await open('&outputs&load', session);
      await expectLines(page, asked);
      const removed = pages.teller.removed.length;
      await inPage(
        page,
        ({ chat }, answer) => {
          const part = chat.messages[1]!.parts.find(({ type }) => type === 'tool-remove') as { toolCallId: string };
          void chat.addToolOutput({ tool: 'remove', toolCallId: part.toolCallId, ...(answer as { output: string }) });
        },
        given,
      );
      const output = 'output' in given ? given.output : { error: given.errorText };
      const said = `tool: ${JSON.stringify(output)}`;
      const state = 'output' in given ? 'output-available' : 'output-error';
      await expectLines(page, ['user: delete', `assistant: tool-remove ${state}`, `assistant: ${said}`]);
      await settled(page);
      expect(pages.teller.removed).toHaveLength(removed);
      const stored = await pages.teller.store.getSnapshot({ sessionId: session });
      expect(stored).toMatchObject({ status: 'completed', finishReason: 'stop' });
      const parts = stored!.state!.messages!.flatMap(({ content }) => content);
      expect(parts.flatMap(({ toolResponse }) => toolResponse?.output ?? [])).toEqual([output]);
      expect(pages.complaints).toEqual([]);
    },
  );

  it('is stopped in the middle of a reply, which is loaded as it was kept, and generated again in its place', async () => {
    renew();
    const session = `stopped-${Math.random()}`;
    const page = await open('&resume&load', session);
    expect(pages.complaints.splice(0)).toHaveLength(1); // The session does not exist yet.
    await send(page, 'hello');
    await settled(page);
    await send(page, 'wait');
    const kept = ['user: hello', `assistant: ${STORY}`, 'user: wait', `assistant: ${BEGUN}`];
    await expectLines(page, kept);
    await inPage(page, ({ chat }) => chat.stop());
    await settled(page);
    const { store, asked } = pages.teller;
    const latest = () => store.getSnapshot({ sessionId: session });
    await expect.poll(latest).toMatchObject({ status: 'aborted', finishReason: 'aborted' });
    const texts = (await latest())!.state!.messages!.map(({ content }) => content[0]?.text);
    expect(texts).toEqual(['hello', STORY, 'wait', BEGUN]);
    const before = asked.length;
    await page.reload();
    await expectLines(page, kept);
    await settled(page);
    // The turn no longer runs, and no stream is requested again.
    await inPage(page, ({ chat }) => chat.resumeStream());
    await expectLines(page, kept);
    expect(asked).toHaveLength(before);
    pages.teller.mayEnd.open();
    await inPage(page, ({ chat }) => chat.regenerate());
    await expectLines(page, [...kept.slice(0, 3), `assistant: ${STORY}`]);
    await settled(page);
    const { items } = await store.listSnapshots({ sessionId: session });
    const [hello] = items;
    expect(items).toMatchObject([
      { status: 'completed' },
      { status: 'aborted', parentId: hello!.snapshotId },
      { status: 'completed', parentId: hello!.snapshotId },
    ]);
    expect(pages.complaints).toEqual([]);
  });

  it('is stopped, and continues from what was kept', async () => {
    renew();
    const page = await open();
    await send(page, 'wait');
    await expectLines(page, ['user: wait', `assistant: ${BEGUN}`]);
    await inPage(page, ({ chat }) => chat.stop());
    await settled(page);
    await send(page, 'hello');
    await expectLines(page, ['user: wait', `assistant: ${BEGUN}`, 'user: hello', `assistant: ${STORY}`]);
    await settled(page);
    const snapshotId = await inPage(
      page,
      ({ chat }) => (chat.messages.at(-1)!.metadata as { snapshotId: string }).snapshotId,
    );
    const stored = await remoteAgent({ url: pages.teller.url }).getSnapshot(snapshotId);
    expect(stored?.state?.messages?.map(({ content }) => content[0]?.text)).toEqual(['wait', BEGUN, 'hello', STORY]);
  });

  it.each(['hello', undefined, 'delete'])(
    'is loaded again, stopped in the middle of a reply, and continues from what was kept (before: %s)',
    async (before) => {
      renew();
      const session = `reloaded-${before}-${Math.random()}`;
      const page = await open('&resume&load&outputs', session);
      if (before) {
        await send(page, before);
        await settled(page);
      }
      if (before === 'delete') {
        // The reply that is continued is then one that was loaded.
        await page.reload();
        await settled(page);
        const answer = { tool: 'remove', toolCallId: 'call-1', output: 'wait' };
        await inPage(page, ({ chat }, given) => void chat.addToolOutput(given), answer);
      } else await send(page, 'wait');
      const waits = () => expect.poll(() => lines(page)).toContain(`assistant: ${BEGUN}`);
      await waits();
      await page.reload();
      await waits();
      await inPage(page, ({ chat }) => chat.stop());
      await settled(page);
      await send(page, 'next');
      await expect.poll(() => lines(page)).toContain('user: next');
      await settled(page);
      const stored = await pages.teller.store.getSnapshot({ sessionId: session });
      const texts = stored!.state!.messages!.map(({ content: [part] }) => part!.text ?? Object.keys(part!)[0]);
      const begun = { hello: ['hello', STORY, 'wait'], delete: ['delete', 'toolRequest', 'toolResponse'] };
      expect(texts).toEqual([...(before ? begun[before as keyof typeof begun] : ['wait']), BEGUN, 'next', STORY]);
    },
  );

  it('continues with a reply when the page is loaded again, and when its connection breaks', async () => {
    const session = `resume-${Math.random()}`;
    renew();
    const page = await open('&resume&load', session);
    await send(page, 'hello');
    await settled(page);
    pages.teller.cutAfterChunks(1);
    await send(page, 'wait');
    await expectLines(page, ['user: hello', `assistant: ${STORY}`, 'user: wait', `assistant: ${BEGUN}`]);
    const before = pages.teller.asked.length;
    await page.reload();
    await expectLines(page, ['user: hello', `assistant: ${STORY}`, `assistant: ${BEGUN}`]);
    pages.teller.mayEnd.open();
    await expectLines(page, ['user: hello', `assistant: ${STORY}`, `assistant: ${STORY}`]);
    await settled(page);
    expect(pages.teller.asked).toHaveLength(before);
    // No turn is running.
    await page.reload();
    await expectLines(page, ['user: hello', `assistant: ${STORY}`, 'user: wait', `assistant: ${STORY}`]);
  });

  it('generates a reply again, and edits a message, as branches', async () => {
    const session = `branch-${Math.random()}`;
    const page = await open('', session);
    await send(page, 'one');
    await settled(page);
    await send(page, 'two');
    await settled(page);
    await inPage(page, ({ chat }) => chat.regenerate());
    await settled(page);
    await inPage(page, ({ chat }) => chat.sendMessage({ text: 'second', messageId: chat.messages[2]!.id }));
    await expectLines(page, ['user: one', `assistant: ${STORY}`, 'user: second', `assistant: ${STORY}`]);
    const { items } = await pages.teller.store.listSnapshots({ sessionId: session });
    const [first] = items;
    expect(items.map(({ parentId }) => parentId)).toEqual([undefined, ...Array(3).fill(first!.snapshotId)]);
  });

  it.each(['regenerate', 'edit'] as const)('branches off a conversation that was loaded: %s', async (what) => {
    const session = `loaded-${what}-${Math.random()}`;
    const first = await open('', session);
    for (const text of ['one', 'two', 'three']) {
      await send(first, text);
      await settled(first);
    }
    const page = await open('&load', session);
    const reply = `assistant: ${STORY}`;
    await expectLines(page, ['user: one', reply, 'user: two', reply, 'user: three', reply]);
    if (what === 'regenerate') await inPage(page, ({ chat }) => chat.regenerate());
    else await inPage(page, ({ chat }) => chat.sendMessage({ text: 'second', messageId: chat.messages[2]!.id }));
    await settled(page);
    const { items } = await pages.teller.store.listSnapshots({ sessionId: session });
    const [one, two, three, branch] = items;
    expect(items).toHaveLength(4);
    expect(three!.parentId).toBe(two!.snapshotId);
    expect(branch!.parentId).toBe((what === 'regenerate' ? two : one)!.snapshotId);
  });

  it('shows why a turn failed, and generates the reply again', async () => {
    const page = await open();
    await send(page, 'crash');
    await page.getByRole('alert').waitFor();
    expect(await inPage(page, ({ chat }) => (chat.error as unknown as { status: string }).status)).toBe('INTERNAL');
    await inPage(page, ({ chat }) => chat.regenerate());
    await expectLines(page, ['user: crash', `assistant: ${STORY}`]);
  });
});
