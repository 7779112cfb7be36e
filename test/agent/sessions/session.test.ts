import { GenkitError, Message } from 'genkit';
import { InMemorySessionStore, Session, SessionRunner, type Artifact, type TurnContext } from 'genkitx-agents';
import { describe, expect, test, vi } from 'vitest';
import { model, user } from '../support/helpers.ts';

describe('Session', () => {
  test('creates an id if none is given', () => {
    expect(new Session({ sessionId: 'mine' }).sessionId).toBe('mine');
    expect(new Session().sessionId).not.toBe(new Session().sessionId);
    expect(new Session().getState()).toEqual({ sessionId: expect.any(String) as string, messages: [], artifacts: [] });
  });

  test('copies its input and its output', () => {
    const given = { messages: [user('a')], custom: { list: [1] }, artifacts: [{ name: 'x', parts: [{ text: '1' }] }] };
    const session = new Session(given);
    const added = model('b');
    session.addMessages([added]);
    const before = structuredClone(session.getState());
    given.messages[0]!.content = [];
    given.custom.list.push(2);
    given.artifacts.length = 0;
    added.content = [];
    session.getMessages()[0]!.content = [];
    session.getArtifacts()[0]!.parts = [];
    session.getState().messages?.pop();
    session.getState().custom?.list.push(3);
    expect(session.getState()).toEqual(before);
  });

  test('keeps the data of a message that is an instance', () => {
    const session = new Session();
    session.addMessages([new Message(model('a'), { parser: () => 1 })]);
    expect(session.getMessages()).toStrictEqual([model('a')]);
  });

  test('setMessages replaces them all', () => {
    const session = new Session({ messages: [user('a'), model('b')] });
    session.setMessages([user('c')]);
    expect(session.getMessages()).toEqual([user('c')]);
  });

  test('every change increases the version and is reported to listeners until they are removed', () => {
    const session = new Session<{ n: number }>();
    const custom = vi.fn();
    const artifacts = vi.fn((artifact: Artifact) => artifact.name);
    session.on('customChanged', custom);
    session.on('artifactAdded', artifacts);
    session.on('artifactUpdated', artifacts);
    const versions = [session.getVersion()];
    for (const change of [
      () => session.addMessages([user('a')]),
      () => session.updateCustom(() => ({ n: 1 })),
      () => session.addArtifacts([{ name: 'x', parts: [] }]),
      () => session.addArtifacts([{ name: 'x', parts: [] }]),
      () => session.addArtifacts([]),
    ]) {
      change();
      versions.push(session.getVersion());
    }
    expect(versions).toEqual([0, 1, 2, 3, 4, 4]);
    expect(custom).toHaveBeenCalledTimes(1);
    expect(artifacts.mock.results.map(({ value }) => value as string)).toEqual(['x', 'x']);
    session.off('customChanged', custom);
    session.updateCustom(() => ({ n: 2 }));
    expect(custom).toHaveBeenCalledTimes(1);
  });

  test.each<[string, () => void]>([
    [
      'throws',
      () => {
        throw new Error('deaf');
      },
    ],
    ['rejects', () => Promise.reject(new Error('deaf'))],
  ])('a listener that %s harms neither the change nor the other listeners', (_, listener) => {
    const session = new Session<{ n: number }>();
    const heard = vi.fn();
    session.on('customChanged', listener);
    session.on('customChanged', heard);
    session.updateCustom(() => ({ n: 1 }));
    expect(session.getCustom()).toEqual({ n: 1 });
    expect(heard).toHaveBeenCalledOnce();
  });

  test('an update that returns a promise is refused', () => {
    const session = new Session();
    expect(() => session.updateCustom(async () => ({ n: 1 }))).toThrow('Await before the update');
    expect(session.getCustom()).toBeUndefined();
  });

  test('a value that is not JSON is refused with its path', () => {
    expect(() => new Session({ custom: { at: [() => 1] } })).toThrow('/at/0');
  });
});

describe('SessionRunner', () => {
  async function* inputs(...texts: string[]) {
    for (const text of texts) yield { message: user(text) };
  }

  test('without an agent runs a handler: each input is a turn, nothing is saved', async () => {
    const session = new Session<{ n: number }>();
    const runner = new SessionRunner(session, inputs('a', 'b'));
    const seen: unknown[] = [];
    await runner.run(async (input, { turnIndex }) => {
      seen.push([input.message?.content[0]?.text, turnIndex]);
      runner.updateCustom(() => ({ n: turnIndex }));
      return { finishReason: 'length' };
    });
    expect(seen).toEqual([
      ['a', 0],
      ['b', 1],
    ]);
    expect(runner.turnIndex).toBe(2);
    expect(runner.lastTurnFinishReason).toBe('length');
    expect(runner.sessionId).toBe(session.sessionId);
    expect(runner.getState()).toEqual({
      sessionId: session.sessionId,
      messages: [user('a'), user('b')],
      custom: { n: 1 },
      artifacts: [],
    });
  });

  test('stops at the first turn that does not complete', async () => {
    const error = { status: 'INTERNAL', message: 'no' };
    const runTurn = vi.fn(async () => ({ status: 'failed' as const, error }));
    const runner = new SessionRunner(new Session(), inputs('a', 'b'), { runTurn });
    await runner.run(async () => {});
    expect(runTurn).toHaveBeenCalledTimes(1);
    expect(runner.turnIndex).toBe(0);
    expect(runner.lastTurnError).toEqual(error);
    expect(runner.lastTurnFinishReason).toBe('failed');
  });

  test('accepts Genkit’s options: each turn is saved as the child of the one before, and reported', async () => {
    const store = new InMemorySessionStore<{ n: number }>();
    const session = new Session<{ n: number }>();
    const told: unknown[] = [];
    const runner = new SessionRunner(session, inputs('a', 'b', 'c'), {
      store,
      lastSnapshot: { snapshotId: 'root' },
      onEndTurn: (...args) => {
        told.push(args);
        throw new Error('Not the turn’s concern.');
      },
      onDetach: () => {},
    });
    const turns: TurnContext[] = [];
    await runner.run(async (_input, turn) => {
      turns.push(turn);
      runner.updateCustom(() => ({ n: turn.turnIndex }));
      if (turn.turnIndex === 2) throw new GenkitError({ status: 'UNAVAILABLE', message: 'No model.' });
      return { finishReason: 'stop' };
    });
    const [first, second, third] = turns.map(({ snapshotId }) => snapshotId);
    expect(turns.map(({ parentSnapshotId }) => parentSnapshotId)).toEqual(['root', first, second]);
    expect(told).toEqual([
      [first, 'stop'],
      [second, 'stop'],
      [third, 'failed'],
    ]);
    expect(runner.lastTurnError).toEqual({ status: 'UNAVAILABLE', message: 'No model.' });
    expect(runner.lastGoodSnapshotId).toBe(second);
    expect(runner.lastGoodState).toMatchObject({ custom: { n: 1 }, messages: [user('a'), user('b')] });
    const saved = await Promise.all([first, second, third].map((id) => store.getSnapshot({ snapshotId: id! })));
    expect(saved).toMatchObject([
      { parentId: 'root', status: 'completed', finishReason: 'stop', state: { custom: { n: 0 } } },
      { parentId: first, status: 'completed', state: { custom: { n: 1 }, messages: [user('a'), user('b')] } },
      { parentId: second, status: 'failed', error: { status: 'UNAVAILABLE' }, state: { custom: { n: 2 } } },
    ]);
  });

  test('aborts a turn that throws after its signal was aborted, and saves nothing', async () => {
    const store = new InMemorySessionStore();
    const controller = new AbortController();
    const session = new Session();
    const runner = new SessionRunner(session, inputs('a'), { store, abortSignal: controller.signal });
    await runner.run(async () => {
      controller.abort();
      throw new Error('aborted');
    });
    expect(runner.lastTurnFinishReason).toBe('aborted');
    expect(await store.getSnapshot({ sessionId: session.sessionId })).toBeUndefined();
  });

  test('refuses unknown options with a sentence', () => {
    const options = { stor: new InMemorySessionStore() } as object;
    expect(() => new SessionRunner(new Session(), inputs(), options)).toThrow(
      "has no option 'stor'. Its options are store,",
    );
    const asFunction = (async () => {}) as object;
    expect(() => new SessionRunner(new Session(), inputs(), asFunction)).toThrow('Its options are store,');
    expect(() => new SessionRunner(new Session(), inputs()).maybeSnapshot()).toThrow('once, after its handler');
  });
});
