import { genkit } from 'genkit';
import { AgentInitError, defineCustomAgent, type AgentInit } from 'genkitx-agents';
import { describe, expect, test } from 'vitest';
import { call } from '../support/helpers.ts';
import { STORE_KINDS } from '../support/stores.ts';

const SECRET = 'postgres://app:hunter2@db';

const fail = () => {
  throw new TypeError(SECRET);
};

const getter = () => Object.defineProperty({ fine: 1 }, 'gone', { enumerable: true, get: fail });

const UNREADABLE: [name: string, make: () => object, path: string][] = [
  ['a getter that throws', () => ({ deep: [getter()] }), 'custom.deep.0.gone'],
  ['a proxy that throws for its members', () => ({ proxy: new Proxy({ a: 1 }, { get: fail }) }), 'custom.proxy.a'],
  ['a proxy that throws for its keys', () => ({ proxy: new Proxy({ a: 1 }, { ownKeys: fail }) }), 'custom.proxy'],
  [
    'a proxy that throws for its kind',
    () => ({ proxy: new Proxy({ a: 1 }, { getPrototypeOf: fail }) }),
    'custom.proxy',
  ],
];

describe.each(STORE_KINDS)('a state that throws when it is read, on $name', ({ make: makeStore }) => {
  test.each(UNREADABLE)(
    '%s fails the turn as any value does that is not JSON, with its path, and is not saved',
    async (_, make, path) => {
      const store = await makeStore();
      const agent = defineCustomAgent<object>(genkit({}), { name: 'odd', store }, async (sess) => {
        await sess.run(async () => sess.updateCustom(make));
        return {};
      });
      const { output } = await call(agent, ['hi'], { sessionId: 's' });
      expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'INTERNAL' } });
      expect(output.error?.message).toContain(`${path} is not a JSON value`);
      expect(JSON.stringify(output)).not.toContain(SECRET);
      const kept = await store.getSnapshot({ sessionId: 's' });
      expect(kept?.status).not.toBe('completed');
      expect(JSON.stringify(kept ?? {})).not.toContain(SECRET);
    },
  );
});

describe('an init of a call in process', () => {
  const agent = defineCustomAgent(genkit({}), { name: 'plain' }, async (sess) => {
    await sess.run(async () => {});
    return {};
  });
  const calls: [string, (init: AgentInit) => Promise<unknown>][] = [
    ['run', (init) => agent.run({}, { init })],
    ['streamBidi', async (init) => agent.streamBidi(init)],
  ];

  test.each(calls)('that is invalid is refused, typed: %s', async (_, run) => {
    for (const init of [null, 'x', 7] as unknown as AgentInit[]) {
      const error: unknown = await run(init).catch((thrown: unknown) => thrown);
      expect(AgentInitError.isInstance(error)).toBe(true);
      expect(error).toMatchObject({
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining('or omitted') as string,
      });
    }
  });

  test.each(calls)('with a state that throws is refused, with the path: %s', async (_, run) => {
    const error: unknown = await run({ state: { custom: getter() } }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining('"/state/custom/gone"') as string,
    });
    expect(String(error)).not.toContain(SECRET);
  });
});
