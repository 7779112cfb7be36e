import { z } from 'genkit';
import {
  currentSession,
  defineAgent,
  defineCustomAgent,
  genkit,
  recoverRuns,
  SessionService,
  type AgentInit,
  type AgentInput,
  type AgentOutput,
  type AgentStateOptions,
  type ScopedState,
  type ScopeStore,
  type SessionStoreOptions,
  type SnapshotStore,
} from 'genkitx-agents';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { call, model, user } from '../agent/support/helpers.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { collectSpans, type Span } from '../support/spans.ts';
import { countingStore, storeAround, type Counts } from './store-around.ts';

/** Store objects on one empty backend: the same object twice where the medium is the object. */
export interface StateStores {
  a: SnapshotStore & ScopeStore;
  b: SnapshotStore & ScopeStore;
  /** All stored data, as text: the bytes of the medium if they can be read, and the values read from it. */
  raw: () => Promise<string>;
  close: () => Promise<void>;
}

/** Opens stores whose tenants are what `context.tenant` says. */
export type OpenStateStores = (options: {
  snapshotPathPrefix: (options?: SessionStoreOptions) => string;
}) => Promise<StateStores>;

const ANYTHING = z.record(z.string(), z.any());
const ADA = { appName: 'shop', userId: 'ada' };

type Work = (state: ScopedState, snapshotId: string) => unknown;

/** One process: an agent whose turns run the test's functions. */
function shopOn(store: SnapshotStore, options: Partial<AgentStateOptions> & { name?: string } = {}) {
  const ai = genkit({});
  const works = new Map<string, Work>();
  const agent = defineCustomAgent(
    ai,
    { name: 'shop', appName: 'shop', store, scopes: { user: ANYTHING, app: ANYTHING }, ...options },
    async (sess) => {
      await sess.run(async (input, { snapshotId }) => {
        await works.get(input.message!.content[0]!.text!)!(sess.state, snapshotId);
        sess.addMessages([model('done')]);
      });
      return { message: sess.getMessages().at(-1) };
    },
  );
  const inputOf = (work: Work): AgentInput => {
    const name = `work ${works.size}`;
    works.set(name, work);
    return { message: user(name) };
  };
  const turn = async (work: Work, init: AgentInit = {}, context: object = { auth: { uid: 'ada' } }) => {
    const { result } = await agent.run(inputOf(work), { init, context });
    return result as AgentOutput;
  };
  const read = async (init?: AgentInit, context?: object) => {
    let seen: unknown;
    const { error } = await turn((state) => (seen = state.toObject()), init, context);
    expect(error).toBeUndefined();
    return seen;
  };
  return { ai, agent, works, inputOf, turn, read };
}

interface Scene extends StateStores {
  records: (context?: object) => Promise<unknown[]>;
}

type On = (title: string, body: (scene: Scene) => Promise<void>) => void;

/** The readable data of the global tenant's sessions, as text: the medium may compress it. */
export async function readableOf(store: SnapshotStore): Promise<string> {
  const all: unknown[] = [];
  for (const { sessionId } of (await store.listSessions()).items) {
    for (const { snapshotId } of (await store.listSnapshots({ sessionId })).items) {
      all.push(await store.getSnapshot({ snapshotId }));
    }
  }
  return JSON.stringify(all);
}

/** The tests of `session.state` over one store. */
export function sessionStateSuite(name: string, open: OpenStateStores): void {
  const on: On = (title, body) =>
    it(title, async () => {
      const stores = await open({ snapshotPathPrefix: (given) => String(given?.context?.['tenant'] ?? 'global') });
      const scopes = [
        { scope: 'user', ...ADA },
        { scope: 'app', appName: 'shop' },
      ] as const;
      try {
        await body({ ...stores, records: (context) => stores.b.readScopes({ scopes, context }) });
      } finally {
        vi.useRealTimers();
        await stores.close();
      }
    });

  describe(`session.state over ${name}`, () => {
    lives(on);
    once(on);
    background(on);
    helpers(on);
    belongs(on);
    costs(on);
    temporary(on);
    events(on);
  });
}

function lives(on: On): void {
  on('plain keys go back with a rewind and along with a branch; user: and app: keys do neither', async ({ a, b }) => {
    const shop = shopOn(a);
    const set =
      (n: number): Work =>
      (state) => {
        for (const key of ['step', 'user:step', 'app:step']) state.set(key, n);
      };
    const first = await shop.turn(set(1), { sessionId: 's' });
    const second = await shop.turn(set(2), { sessionId: 's' });
    expect(await shop.read({ snapshotId: first.snapshotId })).toEqual({ step: 1, 'user:step': 2, 'app:step': 2 });
    expect(await shopOn(b).read({ snapshotId: second.snapshotId })).toEqual({ step: 2, 'user:step': 2, 'app:step': 2 });
    expect((await b.getSnapshot({ snapshotId: first.snapshotId }))?.state?.custom).toEqual({ step: 1 });
    // Another session of the user begins with the user's keys.
    expect(await shopOn(b).read({ sessionId: 'other' })).toEqual({ 'user:step': 2, 'app:step': 2 });
  });

  on('turns that change different keys of one user at the same time both stay', async ({ a, b, records }) => {
    const [one, two] = [shopOn(a), shopOn(b)];
    await Promise.all([
      one.turn((state) => state.set('user:theme', 'dark')),
      two.turn((state) => state.set('user:size', 'large')),
    ]);
    expect(await records()).toEqual([{ theme: 'dark', size: 'large' }, {}]);
  });

  on('a key that is set to what the turn read is set: others may have changed it since', async ({ a, b, records }) => {
    const [shop, other] = [shopOn(a), shopOn(b)];
    const set =
      (theme: string): Work =>
      (state) =>
        state.set('user:theme', theme);
    await shop.turn(set('dark'));
    await shop.turn(async (state, id) => {
      await other.turn(set('light'));
      set('dark')(state, id);
    });
    expect(await records()).toEqual([{ theme: 'dark' }, {}]);
  });

  on('an event sets a key whatever it was', async ({ a, b, records }) => {
    const [mine, theirs] = [new SessionService(a), new SessionService(b)];
    const event = (theme: string) => ({ author: 'system', actions: { stateDelta: { 'user:theme': theme } } });
    const first = await mine.createSession({ ...ADA, state: { 'user:theme': 'dark' } });
    await theirs.appendEvent(await theirs.createSession(ADA), event('light'));
    await mine.appendEvent(first, event('dark'));
    expect(await records()).toEqual([{ theme: 'dark' }, {}]);
  });

  on('of concurrent updates of one key from many sessions none is lost', async ({ a, b, records }) => {
    const shops = [shopOn(a), shopOn(b)];
    const work: Work = (state) => state.update('user:orders', (orders) => Number(orders ?? 0) + 1);
    const outputs = await Promise.all(Array.from({ length: 20 }, (_, i) => shops[i % 2]!.turn(work)));
    expect(outputs.map(({ error }) => error)).toEqual(outputs.map(() => undefined));
    expect(await records()).toEqual([{ orders: 20 }, {}]);
  });

  on('each turn of one call is read again and saved by itself', async ({ a, b, records }) => {
    const [shop, other] = [shopOn(a), shopOn(b)];
    const seen: unknown[] = [];
    const inputs = [
      shop.inputOf(async (state) => {
        state.set('user:mine', 1);
        state.set('temp:x', 1);
        await other.turn((theirs) => theirs.set('user:theirs', 1));
      }),
      shop.inputOf((state) => void seen.push(state.toObject())),
    ];
    await call(shop.agent, inputs, {}, { context: { auth: { uid: 'ada' } } });
    expect(seen).toEqual([{ 'user:mine': 1, 'user:theirs': 1 }]);
    expect(await records()).toEqual([{ mine: 1, theirs: 1 }, {}]);
  });

  on('what is changed while a turn is saved, or before the next, belongs to the next save', async ({ a, records }) => {
    let during = (): void => {};
    const store = storeAround(a, async (name, _args, make) => {
      const made = await make();
      if (name === 'saveSnapshot') during();
      return made;
    });
    const set = (state: ScopedState, key: string) => {
      for (const prefix of ['', 'user:', 'app:']) state.set(`${prefix}${key}`, 1);
    };
    const late = shopOn(store);
    await late.turn(
      (state) => {
        set(state, 'turn');
        during = () => {
          during = () => {};
          set(state, 'late');
        };
      },
      { sessionId: 's' },
    );
    const both = { turn: 1, late: 1 };
    expect(await records()).toEqual([both, both]);
    expect((await a.getSnapshot({ sessionId: 's' }))?.state?.custom).toEqual(both);
    const shop = shopOn(a);
    let between = (): void => {};
    const stream = shop.agent.streamBidi({}, { context: { auth: { uid: 'ada' } } });
    stream.send(shop.inputOf((state) => (between = () => set(state, 'between'))));
    for await (const chunk of stream.stream) {
      if (!chunk.turnEnd) continue;
      between();
      between = () => {};
      stream.send(shop.inputOf((state) => state.update('user:between', (n) => Number(n) + 1)));
      stream.close();
    }
    expect((await stream.output).error).toBeUndefined();
    expect(await records()).toEqual([
      { ...both, between: 2 },
      { ...both, between: 1 },
    ]);
  });

  on('outputKey keeps a reply under a key of any scope', async ({ a, records }) => {
    for (const outputKey of ['reply', 'user:reply', 'app:reply', 'temp:reply']) {
      await shopOn(a, { outputKey }).turn(() => {}, { sessionId: outputKey });
    }
    expect(await records()).toEqual([{ reply: 'done' }, { reply: 'done' }]);
    expect((await a.getSnapshot({ sessionId: 'reply' }))?.state?.custom).toEqual({ reply: 'done' });
    expect((await a.getSnapshot({ sessionId: 'temp:reply' }))?.state?.custom).toBeUndefined();
  });

  on(
    'a reply too long for its outputKey ends the turn well: only the key stays as it was, and the output says so',
    async (scene) => {
      const { a, b, records } = scene;
      for (const outputKey of ['reply', 'user:reply']) {
        const init = { sessionId: outputKey };
        await shopOn(a, { outputKey }).turn(() => {}, init);
        const limited = shopOn(b, { outputKey, limits: { maxValueBytes: 5 } });
        const output = await limited.turn((state) => state.set('app:turns', 2), init);
        expect(output).toMatchObject({
          message: { content: [{ text: 'done' }] },
          error: { status: 'INVALID_ARGUMENT', message: expect.stringContaining(`"${outputKey}"`) as string },
        });
        expect(output.finishReason).not.toBe('failed');
        const saved = await a.getSnapshot(init);
        expect(saved).toMatchObject({ snapshotId: output.snapshotId, status: 'completed' });
        expect(saved?.state?.messages).toHaveLength(4);
        expect(await shopOn(a).read({ snapshotId: output.snapshotId! })).toMatchObject({ [outputKey]: 'done' });
      }
      expect(await records()).toEqual([{ reply: 'done' }, { turns: 2 }]);
    },
  );
}

const ADD: Work = (state) => {
  state.update('user:n', (n) => Number(n ?? 0) + 1);
  state.update('app:n', (n) => Number(n ?? 0) + 1);
};

function once(on: On): void {
  on('a turn that fails or is aborted applies none of its changes', async ({ a, records }) => {
    for (const onAbort of ['discard', 'keep'] as const) {
      const shop = shopOn(a, { onAbort });
      const failed = await shop.turn((state, id) => {
        ADD(state, id);
        throw new Error('went wrong');
      });
      expect(failed.finishReason).toBe('failed');
      const abort = new AbortController();
      const input = shop.inputOf(async (state, id) => {
        ADD(state, id);
        abort.abort();
        await new Promise(() => {});
      });
      const { result } = await shop.agent.run(input, {
        init: {},
        context: { auth: { uid: 'ada' } },
        abortSignal: abort.signal,
      });
      expect(result.finishReason).toBe('aborted');
    }
    expect(await records()).toEqual([{}, {}]);
  });

  on(
    'what a failed turn changed is not seen or saved by a turn that its agent runs all the same',
    async ({ a, records }) => {
      await shopOn(a).turn((state) => state.set('user:x', 'before'));
      const seen: unknown[] = [];
      const agent = defineCustomAgent(
        genkit({}),
        { name: 'stubborn', appName: 'shop', store: a, scopes: { user: ANYTHING } },
        async (sess) => {
          const state = sess.state as unknown as ScopedState;
          const handle = async (input: AgentInput) => {
            seen.push(state.toObject());
            if (input.message?.content[0]?.text === 'good') return;
            for (const key of ['user:x', 'user:y', 'temp:z']) state.set(key, 'of the failed turn');
            throw new Error('went wrong');
          };
          await sess.run(handle);
          await sess.run(handle);
          return {};
        },
      );
      const { output } = await call(agent, ['bad', 'good'], {}, { context: { auth: { uid: 'ada' } } });
      expect(output.finishReason).not.toBe('failed');
      expect(seen).toEqual([{ 'user:x': 'before' }, { 'user:x': 'before' }]);
      expect(await records()).toEqual([{ x: 'before' }, {}]);
    },
  );

  on('a turn that comes second on its session applies none', async ({ a, b, records }) => {
    const [slow, fast] = [shopOn(a), shopOn(b)];
    await slow.turn(ADD, { sessionId: 's' });
    const late = await slow.turn(
      async (state, id) => {
        ADD(state, id);
        await fast.turn(ADD, { sessionId: 's' });
      },
      { sessionId: 's' },
    );
    expect(late.error).toMatchObject({ status: 'ABORTED' });
    expect(await records()).toEqual([{ n: 2 }, { n: 2 }]);
  });

  for (const isMade of [false, true]) {
    const when = isMade ? 'whose answer got lost' : 'that failed';
    on(`a save ${when} is tried again, and what it changes is changed once`, async ({ a, records }) => {
      let failures = 2;
      const flaky = storeAround(a, async (name, _args, make) => {
        if (name !== 'saveSnapshot' || failures === 0) return make();
        failures--;
        if (isMade) await make();
        throw Object.assign(new Error('cut off'), { status: 'UNAVAILABLE' });
      });
      const output = await shopOn(flaky).turn(ADD);
      expect([output.error, failures]).toEqual([undefined, 0]);
      expect(await records()).toEqual([{ n: 1 }, { n: 1 }]);
    });
  }

  on('a change that the record refuses fails the turn, and nothing of it is applied', async ({ a, records }) => {
    const shop = shopOn(a);
    const fill =
      (key: string): Work =>
      (state) =>
        state.set(key, 'x'.repeat(250_000));
    await shop.turn(fill('user:one'));
    await shop.turn(fill('user:two'));
    const output = await shop.turn((state, id) => {
      fill('user:three')(state, id);
      state.set('app:n', 1);
    });
    expect(output.error).toMatchObject({ status: 'INVALID_ARGUMENT' });
    const [ada, app] = (await records()) as object[];
    expect([Object.keys(ada!), app]).toEqual([['one', 'two'], {}]);
  });
}

/** The leases of all runs expire. */
function letLeasesEnd(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 120_000 });
}

async function settled(store: SnapshotStore, snapshotId: string): Promise<string | undefined> {
  return vi.waitUntil(
    async () => {
      const status = (await store.getSnapshotMetadata({ snapshotId }))?.status;
      return status !== 'pending' && status;
    },
    { interval: 5 },
  );
}

function background(on: On): void {
  on('the turns of a run in the background apply theirs once each', async ({ a, b, records }) => {
    const shop = shopOn(a);
    let goOn = (): void => {};
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    const slow: Work = async (state, id) => {
      ADD(state, id);
      await gate;
    };
    const inputs = [shop.inputOf(slow), { ...shop.inputOf(ADD), detach: true }];
    const { output } = await call(shop.agent, inputs, {}, { context: { auth: { uid: 'ada' } } });
    expect(await records()).toEqual([{}, {}]);
    goOn();
    expect(await settled(b, output.snapshotId!)).toBe('completed');
    expect(await records()).toEqual([{ n: 2 }, { n: 2 }]);
  });

  on('a run that is taken over applies its changes once, to its own user', async ({ a, b, records }) => {
    let lateSaves = 0;
    let isAwake = false;
    const deaf = storeAround(a, (name, _args, make) => {
      // The paused process does not know that another one owns the run.
      if (name === 'onSnapshotStateChange') return () => {};
      const made = make();
      if (name === 'saveSnapshot' && isAwake) void (made as Promise<unknown>).finally(() => lateSaves++);
      return made;
    });
    const dead = shopOn(deaf);
    let wakeUp = (): void => {};
    const asleep = new Promise<void>((resolve) => (wakeUp = resolve));
    const input = dead.inputOf(async (state, id) => {
      ADD(state, id);
      await asleep;
    });
    const { output } = await call(dead.agent, [{ ...input, detach: true }], {}, { context: { auth: { uid: 'ada' } } });
    letLeasesEnd();
    const rescuer = shopOn(b);
    rescuer.works.set(input.message!.content[0]!.text!, ADD);
    // The process that looks for runs has a user of its own.
    const { runs } = await recoverRuns(rescuer.ai, { context: { auth: { uid: 'janitor' } } });
    expect(runs).toHaveLength(1);
    expect(await settled(b, output.snapshotId!)).toBe('completed');
    isAwake = true;
    wakeUp();
    await vi.waitUntil(() => lateSaves > 0, { interval: 5 });
    expect(await records()).toEqual([{ n: 1 }, { n: 1 }]);
    expect(await b.readScopes({ scopes: [{ scope: 'user', appName: 'shop', userId: 'janitor' }] })).toEqual([{}]);
  });
}

function helpers(on: On): void {
  on('the agents that a taken-over run calls act for its user, not for who took it over', async ({ a, b }) => {
    let isDead = true;
    const outerOn = (store: SnapshotStore) => {
      const { ai, agent: helper, inputOf } = shopOn(store, { name: 'helper' });
      const outer = defineCustomAgent(ai, { name: 'outer', appName: 'shop', store }, async (sess) => {
        await sess.run(async () => {
          if (isDead) await new Promise(() => {});
          const { output } = await call(helper, [inputOf(ADD)]);
          expect(output.error).toBeUndefined();
          const other = { context: { auth: { uid: 'eve' } } };
          expect((await call(helper, [inputOf(ADD)], {}, other)).output.error).toBeUndefined();
        });
        return {};
      });
      return { ai, outer };
    };
    const { outer } = outerOn(a);
    const context = { auth: { uid: 'ada' } };
    const { output } = await call(outer, [{ message: user('go'), detach: true }], {}, { context });
    letLeasesEnd();
    isDead = false;
    await recoverRuns(outerOn(b).ai, { context: { auth: { uid: 'janitor' } } });
    expect(await settled(b, output.snapshotId!)).toBe('completed');
    const users = ['ada', 'eve', 'janitor'].map((userId) => ({ scope: 'user', appName: 'shop', userId }) as const);
    expect(await b.readScopes({ scopes: users })).toEqual([{ n: 1 }, { n: 1 }, {}]);
  });
}

function belongs(on: On): void {
  on('the user: keys of createSession are visible at once in the user’s other sessions only', async ({ a, b }) => {
    const sessions = new SessionService(a);
    await sessions.createSession({ ...ADA, state: { 'user:theme': 'dark', 'app:sale': true, step: 1 } });
    const shop = shopOn(b);
    expect(await shop.read()).toEqual({ 'user:theme': 'dark', 'app:sale': true });
    expect(await shop.read({}, { auth: { uid: 'eve' } })).toEqual({ 'app:sale': true });
    expect(await shop.read({}, {})).toEqual({ 'app:sale': true });
    expect(await shop.read({}, { auth: { uid: 'ada' }, tenant: 'other' })).toEqual({});
    expect(await shopOn(b, { appName: 'bank' }).read()).toEqual({});
    expect(await shopOn(b, { appName: undefined, name: 'support' }).read()).toEqual({});
  });

  on('whose user: keys a turn sees is said by the caller, not by the session', async ({ a, records }) => {
    const shop = shopOn(a, { shareSessions: true });
    await shop.turn((state) => state.set('user:secret', 1), { sessionId: 's' });
    const eve = { auth: { uid: 'eve' } };
    expect(await shop.read({ sessionId: 's' }, eve)).toEqual({});
    await shop.turn((state) => state.set('user:secret', 2), { sessionId: 's' }, eve);
    expect(await records()).toEqual([{ secret: 1 }, {}]);
    // And the session keeps its owner.
    const sessions = new SessionService(a);
    expect(await sessions.getSession({ ...ADA, sessionId: 's' })).toBeDefined();
    expect(await sessions.getSession({ appName: 'shop', userId: 'eve', sessionId: 's' })).toBeUndefined();
  });

  on('a client reads its own user: keys with a snapshot, also of a shared session of another user', async ({ a }) => {
    const shop = shopOn(a, { shareSessions: true });
    const context = { auth: { uid: 'ada' } };
    const { snapshotId } = await shop.turn((state) => {
      for (const key of ['step', 'user:theme', 'app:sale', 'temp:x']) state.set(key, 1);
    });
    const seenBy = async (given: object) =>
      (await shop.agent.getSnapshot(snapshotId!, { context: given }))?.state?.custom;
    expect(await seenBy(context)).toEqual({ step: 1, 'user:theme': 1, 'app:sale': 1 });
    expect(await seenBy({ auth: { uid: 'eve' } })).toEqual({ step: 1, 'app:sale': 1 });
    expect(await seenBy({})).toEqual({ step: 1, 'app:sale': 1 });
  });
}

function costs(on: On): void {
  const cost = async (store: SnapshotStore, options: Partial<AgentStateOptions>, work: Work): Promise<Counts> => {
    const { store: counted, counts } = countingStore(store);
    const shop = shopOn(counted, options);
    await shop.turn(() => {}, { sessionId: 's' });
    const before = { ...counts };
    await shop.turn(work, { sessionId: 's' });
    return {
      snapshots: counts.snapshots - before.snapshots,
      records: counts.records - before.records,
      scoped: counts.scoped - before.scoped,
    };
  };

  on(
    'a turn reads one record for each scope that its agent uses, none if it uses none, and writes what it changed',
    async ({ a }) => {
      const nothing = () => {};
      const plain: Work = (state) => state.set('step', 1);
      expect(await cost(a, { scopes: undefined }, plain)).toEqual({ snapshots: 1, records: 0, scoped: 0 });
      expect(await cost(a, { scopes: { app: ANYTHING } }, nothing)).toEqual({ snapshots: 1, records: 1, scoped: 0 });
      expect(await cost(a, {}, nothing)).toEqual({ snapshots: 1, records: 2, scoped: 0 });
      const ofUser: Work = (state) => state.set('user:x', state.get('app:x') ?? 1);
      expect(await cost(a, {}, ofUser)).toEqual({ snapshots: 1, records: 2, scoped: 1 });
    },
  );
}

const CANARY = 'canary-never-to-be-seen-again';

function temporary(on: On): void {
  let spans: Span[];
  beforeAll(async () => {
    spans = await collectSpans();
  });

  on('temp: values are seen by all tools of the turn and nowhere else', async ({ a, raw }) => {
    spans.length = 0;
    const seen: unknown[] = [];
    const { agent, hear } = nested(a, seen);
    for (const text of ['one', 'fail']) {
      const { chunks, output } = await call(agent, [text, text], { sessionId: text });
      hear(chunks, output);
      const { snapshotId } = (await a.getSnapshotMetadata({ sessionId: text }))!;
      hear(await agent.getSnapshot(snapshotId));
    }
    // The second turn of the call begins with none; a sub-agent's tool has its caller's.
    expect(seen).toEqual([
      ['tool', CANARY],
      ['sub-agent', CANARY],
      ['next turn', undefined],
      ['tool', CANARY],
      ['sub-agent', CANARY],
      ['next turn', undefined],
      ['failing', undefined],
    ]);
    const told = JSON.stringify(
      spans.map(({ name, attributes, status, events }) => [name, attributes, status, events]),
    );
    expect(told).toContain('runTurn-2');
    expect(told).not.toContain(CANARY);
    expect(await raw()).toContain('kept-value');
    expect(await raw()).not.toContain(CANARY);
  });

  on('temp: values of a turn are not those of a sub-agent that it left in the background', async ({ a, b }) => {
    const ai = genkit({});
    let goOn = (): void => {};
    const gate = new Promise<void>((resolve) => (goOn = resolve));
    const seen: unknown[] = [];
    let taskId = '';
    const helper = defineCustomAgent(ai, { name: 'helper', store: a }, async (sess) => {
      await sess.run(async () => {
        await gate;
        const state = sess.state as unknown as ScopedState;
        seen.push(state.toObject());
        state.set('temp:helper', 1);
      });
      return {};
    });
    const outer = defineCustomAgent(ai, { name: 'outer', store: a }, async (sess) => {
      await sess.run(async (input) => {
        const state = sess.state as unknown as ScopedState;
        state.set(`temp:${input.message!.content[0]!.text!}`, 1);
        if (taskId === '') {
          taskId = (await helper.chat().detach('go')).snapshotId;
          return;
        }
        goOn();
        expect(await settled(b, taskId)).toBe('completed');
        seen.push(state.toObject());
      });
      return {};
    });
    const { output } = await call(outer, ['one', 'two']);
    expect(output.error).toBeUndefined();
    expect(seen).toEqual([{}, { 'temp:two': 1 }]);
  });

  /** An agent that sets the canary in a tool, and calls a sub-agent whose tool reads it. */
  function nested(store: SnapshotStore, seen: unknown[]) {
    const ai = genkit({});
    const state = (): ScopedState => currentSession().state;
    const tool = (name: string, work: () => unknown) =>
      ai.defineTool({ name, description: name, inputSchema: z.object({}) }, async () => {
        await work();
        return 'ok';
      });
    const use = (...names: string[]) => names.map((name) => ({ toolRequest: { name, ref: name, input: {} } }));
    const inner = scriptedModel(ai, {
      name: 'inner',
      otherwise: ({ request }) => (request.messages.at(-1)?.role === 'tool' ? 'ok' : use('peek')),
    });
    tool('peek', () => {
      seen.push(['sub-agent', state().get('temp:canary')]);
      state().set('temp:more', CANARY);
    });
    const helper = defineAgent(ai, { name: 'helper', model: inner.name, tools: ['peek'], store });
    let calls = 0;
    tool('hide', () => {
      seen.push(calls++ % 2 === 0 ? ['tool', CANARY] : ['next turn', state().get('temp:more')]);
      if (calls % 2 === 0) return;
      state().set('temp:canary', CANARY);
      state().set('step', 'kept-value');
    });
    tool('ask', () => helper.chat().send('look'));
    tool('trip', () => {
      seen.push(['failing', state().get('temp:canary')]);
      state().set('temp:canary', CANARY);
      throw new Error('went wrong');
    });
    const outer = scriptedModel(ai, {
      otherwise: ({ request }) => {
        const asked = request.messages.filter(({ role }) => role === 'user');
        if (request.messages.at(-1)?.role !== 'tool') return use('hide');
        const used = request.messages.at(-1)?.content[0]?.toolResponse?.name;
        if (asked.length === 1) return used === 'hide' ? use('ask') : 'done';
        return asked[0]?.content[0]?.text === 'fail' && used === 'hide' ? use('trip') : 'done';
      },
    });
    const agent = defineAgent(ai, { name: 'outer', model: outer.name, tools: ['hide', 'ask', 'trip'], store });
    const hear = (...told: unknown[]) => expect(JSON.stringify(told)).not.toContain(CANARY);
    return { agent, hear };
  }
}

function events(on: On): void {
  on('a session that an agent made reads as events, and one made by events goes on with an agent', async ({ a, b }) => {
    const shop = shopOn(a);
    const sessions = new SessionService(b);
    await shop.turn((state) => state.set('user:theme', 'dark'), { sessionId: 's' });
    await shop.turn((state) => state.set('step', 1), { sessionId: 's' });
    const session = (await sessions.getSession({ ...ADA, sessionId: 's' }))!;
    expect(session.events.map(({ author }) => author)).toEqual(['user', 'shop', 'user', 'shop']);
    expect(session.state).toEqual({ step: 1, 'user:theme': 'dark' });
    expect((await sessions.listSessions(ADA)).sessions.map(({ id }) => id)).toEqual(['s']);
    await sessions.appendEvent(session, {
      author: 'system',
      actions: { stateDelta: { step: 2, 'user:theme': 'light', 'app:sale': true, 'temp:x': 1 } },
    });
    expect(await shop.read({ sessionId: 's' })).toEqual({ step: 2, 'user:theme': 'light', 'app:sale': true });
    const { events: recent } = (await sessions.getSession({ ...ADA, sessionId: 's', numRecentEvents: 3 }))!;
    expect(recent.map(({ author }) => author)).toEqual(['system', 'user', 'shop']);
  });
}
