import { genkit, type SessionStore } from 'genkit/beta';
import { z } from 'genkit';
import { applyPatch, defineCustomAgent, type AgentFn } from 'genkitx-agents';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { CustomPatches } from '../../../src/agent/turn/custom-patches.ts';
import { adoptMessages, Session } from '../../../src/session/session.ts';
import { call, model, user } from '../support/helpers.ts';
import { STORE_KINDS } from '../support/stores.ts';

const schema = z.object({
  counter: z.number().int(),
  tags: z.array(z.object({ name: z.string() })).optional(),
});
type State = z.infer<typeof schema>;

function checked(store: SessionStore<State> | undefined, fn: AgentFn<State>) {
  return defineCustomAgent(genkit({}), { name: 'checked', stateSchema: schema, store }, fn);
}

const setTo =
  (value: unknown): AgentFn<State> =>
  async (sess) => {
    await sess.run(async () => sess.updateCustom(() => value as State));
    return { message: model('done') };
  };

describe.each(STORE_KINDS)('stateSchema on $name', ({ make }) => {
  test('a state that fits the schema is saved', async () => {
    const agent = checked(await make(), setTo({ counter: 1, tags: [{ name: 'a' }] }));
    const { output } = await call(agent, ['go']);
    expect((await agent.getSnapshot(output.snapshotId as string))?.state?.custom).toEqual({
      counter: 1,
      tags: [{ name: 'a' }],
    });
  });

  test('a turn whose state does not fit fails with the path, and is not saved as completed', async () => {
    const store = await make();
    const good = await call(checked(store, setTo({ counter: 1 })), ['go'], { sessionId: 's' });
    const bad = await call(checked(store, setTo({ counter: 1.5, tags: [{ name: 'a' }, {}] })), ['go'], {
      sessionId: 's',
    });
    expect(bad.output).toMatchObject({
      finishReason: 'failed',
      error: { status: 'INTERNAL' },
      snapshotId: good.output.snapshotId,
    });
    expect(bad.output.error?.message).toContain('custom.counter must be of type integer');
    expect(bad.output.error?.message).toContain('custom.tags.1.name is missing');
    const leaf = await store.getSnapshot({ sessionId: 's' });
    expect(leaf).toMatchObject({
      status: 'failed',
      parentId: good.output.snapshotId,
      error: { status: 'INTERNAL' },
    });
    expect(leaf?.state, 'what does not fit is not written').toMatchObject({
      custom: { counter: 1 },
      messages: [{ role: 'user' }, { role: 'user' }],
    });
    expect(bad.chunks.at(-1)).toEqual({ turnEnd: { snapshotId: leaf?.snapshotId, finishReason: 'failed' } });
    const next = await call(checked(store, setTo({ counter: 2 })), ['go'], { sessionId: 's' });
    expect((await store.getSnapshot({ snapshotId: next.output.snapshotId }))?.parentId).toBe(good.output.snapshotId);
  });

  test('a failed, aborted or detached turn writes no state that does not fit', async () => {
    const store = await make();
    const settle: (() => void)[] = [];
    const agent = (onAbort: 'keep' | 'discard', end: () => Promise<void>) =>
      defineCustomAgent<State>(genkit({}), { name: 'checked', stateSchema: schema, store, onAbort }, async (sess) => {
        await sess.run(async () => {
          sess.updateCustom(() => ({ counter: 'many' }) as unknown as State);
          await end();
        });
        return {};
      });
    const never = () => new Promise<void>((resolve) => settle.push(resolve));
    const customs: unknown[] = [];
    const look = async (sessionId: string) => {
      const leaf = await store.getSnapshot({ sessionId });
      customs.push([leaf?.status, leaf?.state?.custom]);
    };
    await agent('keep', async () => Promise.reject(new Error('mine'))).run(
      { message: user('go') },
      { init: { sessionId: 'fails' } },
    );
    await look('fails');
    const controller = new AbortController();
    const aborted = agent('keep', () => {
      controller.abort();
      return never();
    }).run({ message: user('go') }, { init: { sessionId: 'aborted' }, abortSignal: controller.signal });
    await aborted;
    await look('aborted');
    const task = await agent('discard', never).chat({ sessionId: 'detached' }).detach('go');
    await look('detached');
    await task.abort();
    await look('detached');
    expect(customs).toEqual([
      ['failed', undefined],
      ['aborted', undefined],
      ['pending', undefined],
      ['aborted', undefined],
    ]);
    for (const end of settle) end();
  });

  test('a stored state that no longer fits ends the call before any turn', async () => {
    const store = await make();
    await store.saveSnapshot('old', () => ({
      sessionId: 's',
      createdAt: new Date().toISOString(),
      status: 'completed',
      state: { sessionId: 's', custom: { counter: 'many' } },
    }));
    const turns = vi.fn();
    const agent = checked(store, async (sess) => {
      await sess.run(async () => turns());
      return {};
    });
    const { output } = await call(agent, ['go'], { sessionId: 's' });
    expect(output).toMatchObject({ sessionId: 's', finishReason: 'failed', error: { status: 'INTERNAL' } });
    expect(output.error?.message).toContain('snapshot "old"');
    expect(turns).not.toHaveBeenCalled();
  });

  test('a state that is not JSON fails the turn with the path, and the session continues', async () => {
    const store = await make();
    const agent = checked(store, setTo({ counter: 1, at: [new Date()] }));
    const { output } = await call(agent, ['go'], { sessionId: 's' });
    expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'INTERNAL' } });
    expect(output.error?.message).toContain('custom.at.0 is not a JSON value: ');
    const kept = await store.getSnapshot({ sessionId: 's' });
    expect(kept).toMatchObject({ status: 'failed', state: { messages: [user('go')] } });
    expect(kept?.state?.custom).toBeUndefined();
    expect(
      (await call(checked(store, setTo({ counter: 1 })), ['go'], { sessionId: 's' })).output.error,
    ).toBeUndefined();
  });

  test('nothing is checked as long as there is no state', async () => {
    const agent = checked(await make(), async (sess) => {
      await sess.run(async () => {});
      return {};
    });
    expect((await call(agent, ['go'])).output.error).toBeUndefined();
  });
});

describe('the error of state that does not fit', () => {
  const SECRET = 'SECRET-VALUE';
  const telling = z
    .object({
      when: z.enum(['now', 'later']),
      at: z.literal('home').optional(),
      ages: z.record(z.string(), z.number()).optional(),
      odd: z.string().refine(
        (text) => text === '',
        (text) => ({ message: `odd: ${text}` }),
      ),
    })
    .strict();
  const wrong = { when: SECRET, at: SECRET, ages: { [SECRET]: SECRET }, odd: SECRET, [SECRET]: 1 };

  const tell = async (redacted: boolean, value: unknown) => {
    const agent = defineCustomAgent(
      genkit({}),
      {
        name: 'telling',
        stateSchema: telling,
        ...(redacted && { clientTransform: { state: (state) => ({ ...state, custom: undefined }) } }),
      },
      async (sess) => {
        await sess.run(async () => sess.updateCustom(() => value));
        return {};
      },
    );
    return (await call(agent, ['go'])).output.error?.message ?? '';
  };

  test('contains no value of the state', async () => {
    const message = await tell(false, { ...wrong, ages: { bob: SECRET } });
    expect(message).not.toContain(SECRET);
    expect(message).toContain('custom.when must be one of "now", "later"');
    expect(message).toContain('custom.ages.bob must be of type number');
    expect(message).toContain('custom.odd is not valid');
  });

  test('contains no key either if the agent has a clientTransform', async () => {
    for (const value of [wrong, { [SECRET]: Number.NaN }, { [SECRET]: [new Date()] }]) {
      const message = await tell(true, value);
      expect(message).toContain('a member');
      expect(message).not.toMatch(/SECRET|ages|when/);
    }
  });
});

describe("a client's own state", () => {
  test('is checked on arrival and before it is returned', async () => {
    const agent = checked(undefined, setTo({ counter: 'x' }));
    const sent = { custom: { counter: 'no' } };
    expect((await call(agent, ['go'], { state: sent })).output).toEqual({
      finishReason: 'failed',
      error: {
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining('The custom state of the state sent along does not fit') as string,
      },
      state: sent,
    });
    const { output } = await call(agent, ['go'], { state: { custom: { counter: 1 } } });
    expect(output).toMatchObject({ finishReason: 'failed', state: { custom: { counter: 1 } } });
  });

  test("the schema's JSON form is in the action's metadata", () => {
    const { metadata } = checked(undefined, setTo({})).__action;
    expect(metadata?.['agent']).toMatchObject({ stateSchema: { properties: { counter: { type: 'integer' } } } });
  });
});

describe('patches of the custom state', () => {
  test('begin each turn with the whole state, then hold the changes', async () => {
    const rest = 'x'.repeat(200);
    const agent = defineCustomAgent<{ n: number; list: number[]; rest: string }>(
      genkit({}),
      { name: 'patching' },
      async (sess) => {
        await sess.run(async () => {
          for (let i = 0; i < 2; i++) {
            sess.updateCustom((custom) => ({ n: (custom?.n ?? 0) + 1, list: [...(custom?.list ?? []), i], rest }));
          }
          sess.updateCustom((custom) => custom ?? { n: 0, list: [], rest });
        });
        return {};
      },
    );
    const { chunks, output } = await call(agent, ['one', 'two']);
    const patches = chunks.flatMap(({ customPatch }) => (customPatch ? [customPatch] : []));
    expect(patches).toEqual([
      [{ op: 'replace', path: '', value: { n: 1, list: [0], rest } }],
      [
        { op: 'replace', path: '/n', value: 2 },
        { op: 'add', path: '/list/-', value: 1 },
      ],
      [{ op: 'replace', path: '', value: { n: 3, list: [0, 1, 0], rest } }],
      [
        { op: 'replace', path: '/n', value: 4 },
        { op: 'add', path: '/list/-', value: 1 },
      ],
    ]);
    let followed: unknown;
    for (const patch of patches) followed = applyPatch(followed, patch);
    expect(followed).toEqual(output.state?.custom);
  });

  test('include a change in place', async () => {
    const agent = defineCustomAgent<{ n: number }>(genkit({}), { name: 'inPlace' }, async (sess) => {
      await sess.run(async () => {
        sess.updateCustom(() => ({ n: 1 }));
        sess.updateCustom((custom) => {
          custom!.n = 2;
          return custom!;
        });
      });
      return {};
    });
    const { chunks, output } = await call(agent, ['go']);
    expect(chunks[1]).toEqual({ customPatch: [{ op: 'replace', path: '/n', value: 2 }] });
    expect(output.state?.custom).toEqual({ n: 2 });
  });

  test('never touch a path that receivers refuse', async () => {
    const agent = defineCustomAgent<Record<string, unknown>>(genkit({}), { name: 'hostile' }, async (sess) => {
      await sess.run(async () => {
        sess.updateCustom(() => ({ keep: 'x'.repeat(500), deep: { constructor: { n: 1 } } }));
        sess.updateCustom(() => ({ keep: 'x'.repeat(500), deep: { constructor: { n: 2 } } }));
      });
      return {};
    });
    const { chunks } = await call(agent, ['go']);
    expect(chunks[1]).toEqual({ customPatch: [{ op: 'replace', path: '/deep', value: { constructor: { n: 2 } } }] });
  });

  test('a removed state is a patch without a value', () => {
    const session = new Session<{ n: number } | undefined>({ custom: { n: 1 } });
    const patches = new CustomPatches(session, undefined);
    expect(patches.next()).toEqual([{ op: 'replace', path: '', value: { n: 1 } }]);
    session.updateCustom(() => undefined);
    expect(patches.next()).toEqual([{ op: 'replace', path: '', value: undefined }]);
    session.updateCustom(() => ({ n: 2 }));
    expect(patches.next()).toEqual([{ op: 'replace', path: '', value: { n: 2 } }]);
  });
});

describe('the cost of an update', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  /** Counts how often the messages' parts are read: every copy and every comparison has to. */
  function countedMessages(count: number) {
    let reads = 0;
    const messages = Array.from({ length: count }, () => {
      const part = { text: 'x'.repeat(2000) };
      Object.defineProperty(part, 'text', {
        enumerable: true,
        get: () => {
          reads++;
          return 'x';
        },
      });
      return { role: 'user' as const, content: [part] };
    });
    return { messages, reads: () => reads };
  }

  test.each([
    ['without a transform', undefined],
    [
      'with a transform of the custom state',
      (state: object) => ({ ...state, custom: (state as { custom: object }).custom }),
    ],
  ])('is that of the custom state, not of the conversation: %s', (_, state) => {
    const { messages, reads } = countedMessages(1000);
    const clone = vi.spyOn(globalThis, 'structuredClone');
    const session = new Session<{ n: number }>();
    // Past the copy that the session makes, so that the counting messages are the ones it holds.
    adoptMessages(session, messages);
    const patches = new CustomPatches(session, state);
    for (let n = 0; n < 100; n++) {
      session.updateCustom(() => ({ n }));
      patches.next();
    }
    // For a transform that reads the messages, they are copied once, not a hundred times.
    expect(reads()).toBeLessThanOrEqual(state ? 2000 : 0);
    expect(clone).not.toHaveBeenCalled();
  });

  test('of a big custom state reads each of its members once: unchanged members are not copied', () => {
    let reads = 0;
    const items = Array.from({ length: 2000 }, (_, id) =>
      Object.defineProperty({ id }, 'text', { enumerable: true, get: () => (reads++, 'x'.repeat(1000)) }),
    );
    const session = new Session<{ n: number; items: object[] }>();
    const patches = new CustomPatches(session, undefined);
    const clone = vi.spyOn(globalThis, 'structuredClone');
    session.updateCustom(() => ({ n: -1, items }));
    patches.next();
    reads = 0;
    for (let n = 0; n < 100; n++) {
      session.updateCustom((custom) => ({ ...custom!, n }));
      expect(patches.next()).toEqual([{ op: 'replace', path: '/n', value: n }]);
    }
    expect(reads).toBe(100 * items.length);
    expect(clone).not.toHaveBeenCalled();
  });

  test('a turn of 100 updates beside 2 MB of messages streams only the updates', async () => {
    const agent = defineCustomAgent<{ n: number }>(genkit({}), { name: 'busy' }, async (sess) => {
      await sess.run(async () => {
        for (let n = 0; n < 100; n++) sess.updateCustom(() => ({ n }));
      });
      return {};
    });
    const clone = vi.spyOn(globalThis, 'structuredClone');
    const { chunks } = await call(agent, ['go'], { state: { messages: [user('x'.repeat(2_000_000))] } });
    expect(chunks.filter(({ customPatch }) => customPatch)).toHaveLength(100);
    expect(JSON.stringify(chunks).length).toBeLessThan(10_000);
    expect(clone).not.toHaveBeenCalled();
  });
});
