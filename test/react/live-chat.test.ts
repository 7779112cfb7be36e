/** A conversation as a page shows it, without a page: over real connections, with the browser's storage in memory. */
import { AgentError, remoteAgent, type AgentAPI } from 'genkitx-agents/client';
import { LiveChat, type ChatView, type LiveChatOptions, type TurnStorage } from 'genkitx-agents/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { gate } from '../server/support/agents.ts';
import { catchErrorLog } from '../server/support/log.ts';
import { serveTeller, STORY, WORDS, type Teller } from './support/teller.ts';

catchErrorLog();

let teller: Teller;
let storage: TurnStorage & { size: number };
let closing: (() => void)[];

beforeEach(async () => {
  teller = await serveTeller();
  storage = memoryStorage();
  closing = [];
});
afterEach(async () => {
  for (const close of closing) close();
  await teller.stop();
});

function memoryStorage(): TurnStorage & { size: number } {
  const items = new Map<string, string>();
  return {
    get size() {
      return items.size;
    },
    getItem: (key) => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: (key) => void items.delete(key),
  };
}

const agent = () => remoteAgent({ url: teller.url, reconnect: { delayMs: 0 } });

/** Opens a chat as a page does. */
function open(options: Partial<LiveChatOptions> = {}): LiveChat {
  const chat = new LiveChat({ agent: agent(), storage, ...options });
  closing.push(chat.open());
  return chat;
}

/** As a route of the page's server. */
const listSnapshots = async (sessionId: string) => (await teller.store.listSnapshots({ sessionId })).items;

/** The agent with some calls replaced. */
function agentWith(change: (api: AgentAPI) => Partial<AgentAPI>): AgentAPI {
  const api = agent();
  return { ...api, ...change(api) };
}

/** The agent, whose next reads fail while `isDown` says so. */
function unreadable(isDown: () => boolean): AgentAPI {
  return agentWith((api) => ({
    getSnapshot: async (...call) => {
      if (isDown()) throw new AgentError({ status: 'UNAVAILABLE', message: 'down' });
      return api.getSnapshot(...call);
    },
  }));
}

/** The first view that fits. */
function until(chat: LiveChat, fits: (view: ChatView) => boolean): Promise<ChatView> {
  return new Promise((resolve) => {
    const look = () => {
      if (!fits(chat.getView())) return;
      unsubscribe();
      resolve(chat.getView());
    };
    const unsubscribe = chat.subscribe(look);
    look();
  });
}

const isIn = (status: ChatView['status']) => (view: ChatView) => view.status === status;

/** The roles and texts. */
const said = ({ messages }: Pick<ChatView, 'messages'>) =>
  messages.map(({ role, content }) => `${role}: ${content.map((part) => part.text ?? Object.keys(part)[0]).join('')}`);

describe('a live chat', () => {
  it('shows the sent message at once, the reply as it arrives, and then the stored messages', async () => {
    const chat = open({ sessionId: 's' });
    await until(chat, isIn('ready'));
    const seen: string[] = [];
    chat.subscribe(() => seen.push(`${chat.getView().status} ${said(chat.getView()).at(-1)}`));
    const done = chat.send('hello');
    await until(chat, isIn('submitted'));
    expect(said(chat.getView())).toEqual(['user: hello']);
    await done;
    expect(chat.getView()).toMatchObject({ status: 'ready', sessionId: 's', error: undefined });
    expect(seen).toContain('submitted user: hello');
    expect(seen.some((line) => line.startsWith('streaming model: Once'))).toBe(true);
    const stored = await agent().getSnapshot({ sessionId: 's' });
    expect(chat.getView().messages).toEqual(stored?.state?.messages);
    expect(chat.getView().snapshotId).toBe(stored?.snapshotId);
    expect(storage.size).toBe(0);
  });

  it('has a session from the first turn on, and from `begin` before it', async () => {
    const unnamed = open();
    expect(unnamed.getView().status).toBe('ready');
    await unnamed.send('hello');
    expect(unnamed.getView().sessionId).toMatch(/\w/);
    const named = open({ begin: () => ({ sessionId: 'mine' }) });
    await named.send('hello');
    expect(named.getView().sessionId).toBe('mine');
    expect(said(named.getView())).toEqual(['user: hello', `model: ${STORY}`]);
  });

  it('shows tool calls and their results, as they are stored', async () => {
    const chat = open();
    await chat.send('weather');
    expect(said(chat.getView())).toEqual([
      'user: weather',
      'model: toolRequest',
      'tool: toolResponse',
      'model: tool: "rain in Oslo"',
    ]);
    const stored = await agent().getSnapshot(chat.getView().snapshotId!);
    expect(chat.getView().messages).toEqual(stored?.state?.messages);
  });

  it('waits for an answer, also when it is opened again, and continues with it', async () => {
    await open({ sessionId: 's' }).send('delete');
    const chat = open({ sessionId: 's' });
    const { interrupts } = await until(chat, isIn('ready'));
    expect(interrupts).toMatchObject([{ name: 'remove', input: { id: 7 }, question: { what: 'number 7' } }]);
    await chat.respond([interrupts[0]!.restart()]);
    expect(teller.removed).toEqual(['7']);
    expect(said(chat.getView()).at(-1)).toBe('model: tool: "removed"');
    expect(chat.getView().interrupts).toEqual([]);
  });

  it('keeps the reply so far of a turn that is stopped, and runs it again in its place', async () => {
    const chat = open();
    const done = chat.send('wait');
    await teller.waits.opened;
    await until(chat, (view) => said(view).at(-1) === 'model: Once upon ');
    await chat.stop();
    await done;
    expect(chat.getView()).toMatchObject({ status: 'ready', isStopped: true });
    expect(said(chat.getView())).toEqual(['user: wait', 'model: Once upon ']);
    teller.mayEnd.open();
    await chat.retry();
    expect(said(chat.getView())).toEqual(['user: wait', `model: ${STORY}`]);
    expect(chat.getView().isStopped).toBe(false);
  });

  it('sends nothing of a turn that is stopped while `begin` runs', async () => {
    let begin: (begun: { sessionId: string }) => void = () => {};
    const chat = open({ begin: () => new Promise((resolve) => (begin = resolve)) });
    const sent = chat.send('Tell me');
    await until(chat, isIn('submitted'));
    await chat.stop();
    begin({ sessionId: 'stopped-early' });
    await sent;
    expect(chat.getView()).toMatchObject({ status: 'ready', isStopped: true, isBusy: false });
    expect(await agent().getSnapshot({ sessionId: 'stopped-early' })).toBeUndefined();
    expect(storage.size).toBe(0);
  });

  it('shows the reply of a turn that is stopped and not kept, until the next message is sent', async () => {
    await teller.stop();
    teller = await serveTeller({ onAbort: 'discard' });
    const chat = open();
    const done = chat.send('wait');
    await until(chat, (view) => said(view).at(-1) === 'model: Once upon ');
    await chat.stop();
    await done;
    expect(chat.getView()).toMatchObject({ status: 'ready', isStopped: true, error: undefined });
    expect(said(chat.getView())).toEqual(['user: wait', 'model: Once upon ']);
    await chat.send('hello');
    expect(said(chat.getView())).toEqual(['user: hello', `model: ${STORY}`]);
  });

  it('shows the error of a failed turn, also when it is opened again, and runs the turn again', async () => {
    await open({ sessionId: 's' }).send('hello');
    const failing = open({ sessionId: 's' });
    await failing.send('crash');
    const chat = open({ sessionId: 's' });
    const view = await until(chat, isIn('error'));
    expect(view.error).toMatchObject({ status: 'INTERNAL', details: { errorId: expect.any(String) } });
    expect(said(view)).toEqual(['user: hello', `model: ${STORY}`, 'user: crash']);
    await chat.retry();
    expect(said(chat.getView())).toEqual([...said(view), `model: ${STORY}`]);
    expect(chat.getView()).toMatchObject({ status: 'ready', error: undefined });
    expect(storage.size).toBe(0);
  });

  it('shows a failed turn even when nothing was kept in the browser', async () => {
    const failing = open({ sessionId: 's', storage: false });
    await failing.send('hello');
    await failing.send('crash');
    const chat = open({ sessionId: 's', storage: false });
    const view = await until(chat, isIn('error'));
    expect(said(view).at(-1)).toBe('user: crash');
    chat.dismiss();
    expect(said(chat.getView())).toEqual(['user: hello', `model: ${STORY}`]);
    expect(chat.getView().status).toBe('ready');
  });

  it('edits a message as a branch, and keeps the other one', async () => {
    const chat = open({ begin: () => ({ sessionId: 's' }) });
    for (const text of ['one', 'two', 'three']) await chat.send(text);
    const before = chat.getView();
    await chat.editAndBranch(2, 'second');
    expect(said(chat.getView())).toEqual(['user: one', `model: ${STORY}`, 'user: second', `model: ${STORY}`]);
    const { branches, snapshotId } = chat.getView();
    expect(branches).toEqual([{ index: 2, snapshotIds: [before.snapshotId, snapshotId], shown: 1 }]);
    await chat.goTo(branches[0]!.snapshotIds[0]);
    expect(said(chat.getView())).toEqual(said(before));
    expect(chat.getView().branches).toMatchObject([{ index: 2, shown: 0 }]);
    await expect(chat.editAndBranch(1, 'x')).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  it('finds an earlier message, and the branches, of a session that it has not read', async () => {
    const first = open({ begin: () => ({ sessionId: 's' }) });
    for (const text of ['one', 'two', 'three']) await first.send(text);
    await first.editAndBranch(2, 'second');
    const listed = vi.fn<typeof listSnapshots>(listSnapshots);
    const chat = open({ sessionId: 's', listSnapshots: listed });
    const view = await until(chat, ({ branches }) => branches.length > 0);
    expect(said(view)[2]).toBe('user: second');
    expect(view.branches).toMatchObject([{ index: 2, shown: 1 }]);
    expect(view.tree).toHaveLength(4);
    await chat.editAndBranch(0, 'anew');
    // There is no snapshot before the first message, so another session begins.
    expect(chat.getView().sessionId).not.toBe('s');
    expect(said(chat.getView())).toEqual(['user: anew', `model: ${STORY}`]);
    expect(listed).toHaveBeenCalledWith('s');
  });

  it('edits the first message within the session that `begin` gave a snapshot', async () => {
    const begin = async (sessionId = 's') => {
      const snapshot = { sessionId, createdAt: new Date().toISOString(), status: 'completed', state: { sessionId } };
      await teller.store.saveSnapshot('start', () => snapshot as never);
      return { sessionId, snapshotId: 'start' };
    };
    const chat = open({ begin });
    await chat.send('one');
    await chat.editAndBranch(0, 'first');
    expect(chat.getView()).toMatchObject({ sessionId: 's', branches: [{ index: 0, shown: 1 }] });
    await chat.retry();
    expect(chat.getView().branches).toMatchObject([{ index: 0, shown: 2 }]);
    expect(teller.asked).toEqual(['one', 'first', 'first']);
  });

  it('follows a running turn when it is opened again, from its first chunk and without a second run', async () => {
    const first = open({ sessionId: 's' });
    await first.send('hello');
    void first.send('wait');
    await teller.waits.opened;
    const again = open({ sessionId: 's' });
    // Like a page whose address names the point.
    void again.goTo(first.getView().snapshotId);
    const view = await until(again, (each) => said(each).at(-1) === 'model: Once upon ');
    expect(said(view)).toEqual(['user: hello', `model: ${STORY}`, 'user: wait', 'model: Once upon ']);
    teller.mayEnd.open();
    for (const chat of [first, again]) {
      const ended = await until(chat, isIn('ready'));
      expect(said(ended).slice(2)).toEqual(['user: wait', `model: ${STORY}`]);
    }
    expect(teller.asked).toEqual(['hello', 'wait']);
    expect(storage.size).toBe(0);
  });

  it('shows turns of other pages while it is open; those that it cannot follow when they are saved', async () => {
    const [one, two] = [open({ sessionId: 's' }), open({ sessionId: 's' })];
    const apart = open({ sessionId: 's', storage: memoryStorage() });
    for (const chat of [one, two, apart]) await until(chat, isIn('ready'));
    void one.send('wait');
    await until(two, (view) => said(view).at(-1) === 'model: Once upon ');
    teller.mayEnd.open();
    for (const chat of [one, two]) await until(chat, (view) => isIn('ready')(view) && said(view).length === 2);
    await apart.refresh();
    expect(said(apart.getView())).toEqual(said(one.getView()));
    expect(teller.asked).toEqual(['wait']);
  });

  it('reports a turn as lost if the server has not kept its stream, and finds it if it was saved', async () => {
    await teller.stop();
    teller = await serveTeller({ keepsStreams: false, onAbort: 'discard' });
    const chat = open({ begin: () => ({ sessionId: 's' }), agent: remoteAgent({ url: teller.url, reconnect: false }) });
    await chat.send('hello');
    void chat.send('wait');
    await until(chat, (view) => said(view).at(-1) === 'model: Once upon ');
    teller.proxy.cut();
    const view = await until(chat, isIn('error'));
    expect(view.error?.status).toBe('UNAVAILABLE');
    expect(said(view)).toEqual(['user: hello', `model: ${STORY}`, 'user: wait', 'model: Once upon ']);
    // Another page has run the same message.
    teller.mayEnd.open();
    await agent().chat({ snapshotId: view.snapshotId! }).send('wait');
    await chat.refresh();
    expect(chat.getView().status).toBe('ready');
    expect(said(chat.getView()).at(-1)).toBe(`model: ${STORY}`);
  });

  it('loses and repeats no chunk when the connection is cut after any byte', async () => {
    const whole = open();
    teller.proxy.cutAfter(Infinity);
    await whole.send('hello');
    const length = teller.proxy.carried();
    let reconnected = 0;
    for (let cut = length; cut > 0; cut -= 23) {
      const chat = open({ sessionId: `cut-${cut}` });
      await until(chat, isIn('ready'));
      teller.proxy.cutAfter(cut);
      const texts: string[] = [];
      chat.subscribe(() => {
        texts.push(said(chat.getView())[1] ?? '');
        if (chat.getView().reconnecting) reconnected += 1;
      });
      await chat.send('hello');
      teller.proxy.cutAfter(Infinity);
      const { status, error } = chat.getView();
      // After a cut in the head of the answer, the client has no stream id.
      if (status === 'error') expect(error?.status).toBe('UNAVAILABLE');
      else expect(said(chat.getView())).toEqual(['user: hello', `model: ${STORY}`]);
      const steps = WORDS.map((_, index) => `model: ${WORDS.slice(0, index + 1).join('')}`);
      for (const text of texts) expect(['', ...steps], `cut after ${cut} bytes`).toContain(text);
    }
    expect(reconnected).toBeGreaterThan(3);
  });

  it('waits for a turn in the background, and can stop it', async () => {
    const task = await agent().chat({ sessionId: 's' }).detach('wait');
    const chat = open({ sessionId: 's' });
    await until(chat, ({ isBusy }) => isBusy);
    await teller.waits.opened;
    teller.mayEnd.open();
    await until(chat, (view) => isIn('ready')(view) && view.snapshotId === task.snapshotId);
    expect(said(chat.getView())).toEqual(['user: wait', `model: ${STORY}`]);
  });

  describe.each([false, true])(
    'of a session whose later turn runs in the background (snapshots are listed: %s)',
    (isListed) => {
      const begun = ['user: hello', `model: ${STORY}`, 'user: wait'];
      const options = (): Partial<LiveChatOptions> => ({ sessionId: 's', ...(isListed && { listSnapshots }) });
      const detach = async () => {
        const chat = agent().chat({ sessionId: 's' });
        const { snapshotId: before } = await chat.send('hello');
        return { before, task: await chat.detach('wait') };
      };

      it('shows its message, and its reply at its end', async () => {
        const { before, task } = await detach();
        const chat = open(options());
        // The address of the page names the snapshot before.
        const named = open({ ...options(), snapshotId: before });
        for (const each of isListed ? [chat, named] : [chat]) {
          const view = await until(each, ({ isBusy }) => isBusy);
          expect(view.status).toBe('submitted');
          expect(said(view).slice(0, 3)).toEqual(begun);
          await each.send('not sent');
        }
        await teller.waits.opened;
        teller.mayEnd.open();
        for (const each of isListed ? [chat, named] : [chat]) {
          await until(each, (view) => isIn('ready')(view) && view.snapshotId === task.snapshotId);
          expect(said(each.getView())).toEqual([...begun, `model: ${STORY}`]);
          expect(each.getView().tree.map(({ status }) => status)).not.toContain('pending');
        }
        await chat.send('hello');
        await chat.goTo(before);
        expect(chat.getView()).toMatchObject({ snapshotId: before, isBusy: false, branches: [] });
        expect((await teller.store.listSessions()).items).toMatchObject([{ leafCount: 1 }]);
      });

      it('stops it', async () => {
        const { task } = await detach();
        const chat = open(options());
        await until(chat, ({ isBusy }) => isBusy);
        await teller.waits.opened;
        await chat.stop();
        const view = await until(chat, isIn('ready'));
        expect(view).toMatchObject({ snapshotId: task.snapshotId, isStopped: true, isBusy: false });
        expect(said(view).slice(0, 3)).toEqual(begun);
      });

      it('finds it when it reads the session again, and keeps the point that is shown', async () => {
        const first = await agent().chat({ sessionId: 's' }).send('hello');
        await agent().chat({ sessionId: 's' }).send('hello');
        const chat = open(options());
        const { snapshotId } = await until(chat, isIn('ready'));
        const task = await agent().chat({ snapshotId }).detach('wait');
        await chat.refresh();
        expect(chat.getView()).toMatchObject({ status: 'submitted', snapshotId });
        await chat.goTo(first.snapshotId);
        expect(chat.getView()).toMatchObject({ status: 'ready', isBusy: true });
        await teller.waits.opened;
        teller.mayEnd.open();
        await until(chat, ({ isBusy }) => !isBusy);
        expect(chat.getView().snapshotId).toBe(first.snapshotId);
        await chat.goTo();
        expect(chat.getView().snapshotId).toBe(task.snapshotId);
      });
    },
  );

  it('works with an agent that keeps no state', async () => {
    const { genkit } = await import('genkitx-agents');
    const ai = genkit({});
    const echo = ai.defineCustomAgent({ name: 'echo' }, async (session) => {
      await session.run(async () => {
        session.addMessages([{ role: 'model', content: [{ text: String(session.getMessages().length) }] }]);
      });
      return { message: session.getMessages().at(-1) };
    });
    const chat = open({ agent: echo });
    await chat.send('a');
    await chat.send('b');
    expect(said(chat.getView())).toEqual(['user: a', 'model: 1', 'user: b', 'model: 3']);
    // Without a snapshot before it the conversation would be lost.
    await chat.retry();
    expect(chat.getView().error?.status).toBe('FAILED_PRECONDITION');
    expect(said(chat.getView())).toEqual(['user: a', 'model: 1', 'user: b', 'model: 3']);
    await chat.editAndBranch(0, 'c');
    expect(said(chat.getView())).toEqual(['user: c', 'model: 1']);
  });

  it('runs a message that is sent at the end of the turn before, and can stop it', async () => {
    const chat = open({ sessionId: 's' });
    const queue = ['wait'];
    let last: Promise<void> | undefined;
    chat.subscribe(() => {
      if (chat.getView().status === 'ready' && chat.getView().messages.length > 0 && queue.length > 0) {
        last = chat.send(queue.shift()!);
      }
    });
    await chat.send('hello');
    await until(chat, (view) => said(view).at(-1) === 'model: Once upon ');
    await chat.stop();
    await last;
    expect(chat.getView()).toMatchObject({ status: 'ready', isStopped: true, error: undefined });
    expect(said(chat.getView())).toEqual(['user: hello', `model: ${STORY}`, 'user: wait', 'model: Once upon ']);
  });

  it('shows a tool request that waits once, before and after the answer', async () => {
    const chat = open({ sessionId: 's' });
    await chat.send('delete');
    expect(said(chat.getView())).toEqual(['user: delete', 'model: toolRequest']);
    await chat.respond([chat.getView().interrupts[0]!.restart()]);
    const stored = await agent().getSnapshot({ sessionId: 's' });
    expect(said(chat.getView())).toEqual(said({ messages: stored!.state!.messages! }));
  });

  it('shows the turn that ends while the conversation is read', async () => {
    const one = open({ sessionId: 's' });
    void one.send('wait');
    await teller.waits.opened;
    const [isRead, mayAnswer] = [gate(), gate()];
    const slow = agentWith((api) => ({
      getSnapshot: async (...call) => {
        const snapshot = await api.getSnapshot(...call);
        isRead.open();
        await mayAnswer.opened;
        return snapshot;
      },
    }));
    const two = open({ sessionId: 's', agent: slow });
    await isRead.opened;
    teller.mayEnd.open();
    await until(one, isIn('ready'));
    mayAnswer.open();
    await until(two, (view) => isIn('ready')(view) && said(view).at(-1) === `model: ${STORY}`);
  });

  describe('whose snapshots cannot be listed', () => {
    const fail = async () => {
      throw new SyntaxError('Unexpected token');
    };

    it('continues without the branches of other pages, until they can be listed again', async () => {
      const other = open({ sessionId: 's' });
      for (const text of ['one', 'two']) await other.send(text);
      await other.editAndBranch(2, 'second');
      const listed = vi.fn<typeof listSnapshots>(listSnapshots).mockImplementationOnce(fail);
      const chat = open({ sessionId: 's', listSnapshots: listed });
      const view = await until(chat, isIn('ready'));
      expect(view).toMatchObject({ error: undefined, branches: [], tree: [] });
      expect(said(view)).toEqual(['user: one', `model: ${STORY}`, 'user: second', `model: ${STORY}`]);
      // The body of an error.
      listed.mockResolvedValue({ status: 'INTERNAL' } as never);
      await chat.send('three');
      await chat.editAndBranch(4, 'third');
      expect(chat.getView()).toMatchObject({ status: 'ready', branches: [{ index: 4, shown: 1 }], tree: [] });
      await other.goTo(chat.getView().snapshotId);
      await other.send('four');
      await chat.refresh();
      expect(said(chat.getView()).at(-2)).toBe('user: four');
      listed.mockImplementation(listSnapshots);
      await chat.refresh();
      expect(chat.getView().branches).toMatchObject([{ index: 2 }, { index: 4 }]);
      expect(chat.getView().tree).toEqual(await listSnapshots('s'));
      listed.mockImplementation(fail);
      await chat.refresh();
      expect(chat.getView()).toMatchObject({ status: 'ready', error: undefined });
      expect(chat.getView().tree).toEqual(await listSnapshots('s'));
    });

    it('shows the error of a session that cannot be read either', async () => {
      const chat = open({ sessionId: 's', listSnapshots: fail, agent: unreadable(() => true) });
      expect((await until(chat, isIn('error'))).error).toMatchObject({ status: 'UNAVAILABLE', message: 'down' });
    });
  });

  describe('that cannot be read', () => {
    it('reads it again before it sends', async () => {
      await open({ sessionId: 's' }).send('one');
      let failures = 1;
      const chat = open({ sessionId: 's', agent: unreadable(() => failures-- > 0) });
      await until(chat, isIn('error'));
      await chat.send('two');
      expect(said(chat.getView())).toEqual(['user: one', `model: ${STORY}`, 'user: two', `model: ${STORY}`]);
      expect(chat.getView().status).toBe('ready');
    });

    it('shows the message as not sent, and sends it with `retry`', async () => {
      await open({ sessionId: 's' }).send('one');
      let isDown = true;
      const chat = open({ sessionId: 's', agent: unreadable(() => isDown) });
      await chat.send('two');
      expect(chat.getView()).toMatchObject({ status: 'error', error: { status: 'UNAVAILABLE' } });
      expect(said(chat.getView())).toEqual(['user: two']);
      await chat.retry();
      expect(said(chat.getView())).toEqual(['user: two']);
      expect(teller.asked).toEqual(['one']);
      isDown = false;
      await chat.retry();
      expect(said(chat.getView())).toEqual(['user: one', `model: ${STORY}`, 'user: two', `model: ${STORY}`]);
      expect(teller.asked).toEqual(['one', 'two']);
    });

    it('`retry` reads again, and runs no turn that has ended', async () => {
      let isDown = false;
      const chat = open({ sessionId: 's', agent: unreadable(() => isDown) });
      await chat.send('one');
      isDown = true;
      await chat.refresh();
      expect(chat.getView().error?.status).toBe('UNAVAILABLE');
      isDown = false;
      await chat.retry();
      expect(chat.getView()).toMatchObject({ status: 'ready', error: undefined });
      expect(teller.asked).toEqual(['one']);
    });

    it('shows a stopped turn as it was streamed', async () => {
      let isDown = false;
      const chat = open({ sessionId: 's', agent: unreadable(() => isDown) });
      const sent = chat.send('wait');
      await until(chat, (view) => said(view).at(-1) === 'model: Once upon ');
      isDown = true;
      await chat.stop();
      await sent;
      expect(chat.getView()).toMatchObject({ status: 'ready', isStopped: true });
      expect(said(chat.getView())).toEqual(['user: wait', 'model: Once upon ']);
    });

    it('waits again for a turn in the background', async () => {
      const task = await agent().chat({ sessionId: 's' }).detach('wait');
      let failures = 1;
      const chat = open({
        sessionId: 's',
        agent: agentWith((api) => ({
          waitForSnapshot: async (...call) => {
            if (failures-- > 0) throw new AgentError({ status: 'UNAVAILABLE', message: 'down' });
            return api.waitForSnapshot(...call);
          },
        })),
      });
      const view = await until(chat, ({ error }) => error !== undefined);
      expect(view.isBusy).toBe(true);
      await teller.waits.opened;
      teller.mayEnd.open();
      await until(chat, (each) => isIn('ready')(each) && each.snapshotId === task.snapshotId);
      expect(chat.getView().error).toBeUndefined();
    });
  });

  it('is read when a message is sent before it is opened', async () => {
    await open({ sessionId: 's' }).send('one');
    const chat = new LiveChat({ agent: agent(), storage, sessionId: 's' });
    const sent = chat.send('two');
    closing.push(chat.open());
    await sent;
    expect(said(chat.getView())).toEqual(['user: one', `model: ${STORY}`, 'user: two', `model: ${STORY}`]);
  });

  it('runs a first turn again in the session that `begin` named, with the newest agent', async () => {
    const begin = vi.fn<() => { sessionId: string }>(() => ({ sessionId: crypto.randomUUID() }));
    const refuse = async () => Response.json({ status: 'PERMISSION_DENIED', message: 'Sign in.' }, { status: 403 });
    const unknown = remoteAgent({ url: teller.url, fetch: refuse });
    const chat = open({ begin, agent: unknown });
    await chat.send('one');
    expect(chat.getView().error?.status).toBe('PERMISSION_DENIED');
    chat.options = { ...chat.options, agent: agent() };
    await chat.retry();
    expect(begin).toHaveBeenCalledTimes(1);
    const { sessionId } = chat.getView();
    expect((await agent().getSnapshot({ sessionId: sessionId! }))?.snapshotId).toBe(chat.getView().snapshotId);
    expect(storage.size).toBe(0);
  });

  it('replaces a first message whose turn failed, in the same session', async () => {
    const chat = open({ sessionId: 's' });
    await chat.send('crash');
    await chat.editAndBranch(0, 'hello');
    expect(chat.getView()).toMatchObject({ status: 'ready', sessionId: 's' });
    expect(said(chat.getView())).toEqual(['user: hello', `model: ${STORY}`]);
    expect(storage.size).toBe(0);
  });

  it('shows the turn that was saved first when another is refused, and runs that one after it', async () => {
    await teller.stop();
    teller = await serveTeller({ onConflict: 'reject' });
    const chat = open({ sessionId: 's' });
    await chat.send('one');
    await agent().chat({ snapshotId: chat.getView().snapshotId! }).send('two');
    await chat.send('three');
    const behind = ['user: one', `model: ${STORY}`, 'user: two', `model: ${STORY}`, 'user: three'];
    expect(chat.getView()).toMatchObject({ status: 'error', error: { status: 'ABORTED' } });
    expect(said(chat.getView()).slice(0, 5)).toEqual(behind);
    const again = open({ sessionId: 's' });
    await until(again, isIn('error'));
    expect(said(again.getView())).toEqual(behind);
    await again.retry();
    expect(said(again.getView())).toEqual([...behind, `model: ${STORY}`]);
    expect(again.getView().status).toBe('ready');
  });

  it('shows the latest snapshot in place of a missing one, and without a session an error', async () => {
    await open({ sessionId: 's' }).send('one');
    const chat = open({ sessionId: 's', snapshotId: 'gone' });
    expect(said(await until(chat, isIn('ready')))).toEqual(['user: one', `model: ${STORY}`]);
    const unnamed = open({ snapshotId: 'gone' });
    expect((await until(unnamed, isIn('error'))).error?.status).toBe('NOT_FOUND');
  });

  it('finds a saved turn whose end the page did not receive', async () => {
    await teller.stop();
    teller = await serveTeller({ keepsStreams: false });
    const chat = open({ sessionId: 's' });
    await chat.send('hello');
    const kept = new Map<string, string>();
    const copy = { getItem: (key: string) => kept.get(key) ?? null, setItem: () => {}, removeItem: () => {} };
    const copying = { ...storage, setItem: (key: string, value: string) => void kept.set(key, value) };
    await open({ sessionId: 's', storage: copying }).send('wait me');
    expect(kept.size).toBe(1);
    const left = open({ sessionId: 's', storage: copy });
    expect(said(await until(left, isIn('ready'))).slice(2)).toEqual(['user: wait me', `model: ${STORY}`]);
    expect(teller.asked).toEqual(['hello', 'wait me']);
  });

  it('does not run a turn again that was saved although its end was lost', async () => {
    await teller.stop();
    teller = await serveTeller({ keepsStreams: false });
    let isDown = false;
    const reads = unreadable(() => isDown);
    const [whole, chat] = [open({ sessionId: 'r', agent: reads }), open({ sessionId: 's', agent: reads })];
    for (const each of [whole, chat]) await until(each, isIn('ready'));
    teller.proxy.cutAfter(Infinity);
    await whole.send('hello');
    const length = teller.proxy.carried();
    isDown = true;
    teller.proxy.cutAfter(length - 20);
    await chat.send('hello');
    expect(chat.getView().error?.status).toBe('UNAVAILABLE');
    isDown = false;
    await chat.retry();
    expect(chat.getView().status).toBe('ready');
    expect(said(chat.getView())).toEqual(['user: hello', `model: ${STORY}`]);
    expect(teller.asked).toEqual(['hello', 'hello']);
  });
});
