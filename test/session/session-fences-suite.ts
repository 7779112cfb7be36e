import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  SessionService,
  type Json,
  type SessionStoreOptions,
  type SnapshotStore,
  type StoredSession,
} from 'genkitx-agents';
import { scale, seed } from '../support/scale.ts';

/** Names that are easily confused with each other, or read as more than a name. */
const NAMES = ['a', 'A', 'a/b', 'b', 'a:b', '../a', 'é', 'e\u0301', '__proto__', 'a\u0000', '","', 'l'.repeat(1024)];
const KEYS = [
  'step',
  '__proto__',
  'user:theme',
  'user:__proto__',
  'user:',
  'app:sale',
  'app:constructor',
  'temp:x',
  'other:x',
];

const callers = fc.constantFrom(...NAMES);
const state = fc.array(fc.tuple(fc.constantFrom(...KEYS), fc.nat(99)), { maxLength: 3 });
const operation = fc.record({
  op: fc.constantFrom('create', 'append', 'append', 'append', 'get', 'get', 'delete', 'list', 'fail'),
  tenant: fc.constantFrom('t', 'T', '../t'),
  app: callers,
  user: callers,
  id: fc.constantFrom('one', 'One', '../one', 'öne', '__proto__'),
  state,
});
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

interface Known {
  app: string;
  user: string;
  plain: Map<string, Json>;
  events: number;
}

/** The expected data, in lists of plain names. */
class Model {
  readonly sessions = new Map<string, Known>();
  readonly #records = new Map<string, Map<string, Json>>();

  record(...names: string[]): Map<string, Json> {
    const key = names.map((part) => `${part.length}:${part}`).join();
    const record = this.#records.get(key) ?? new Map<string, Json>();
    this.#records.set(key, record);
    return record;
  }

  set({ app, user, plain }: Known, delta: Operation['state']): void {
    for (const [key, value] of delta) {
      const [prefix, rest] = [key.slice(0, key.indexOf(':') + 1), key.slice(key.indexOf(':') + 1)];
      if (prefix === 'user:') this.record('user', app, user).set(rest, value);
      else if (prefix === 'app:') this.record('app', app).set(rest, value);
      else if (prefix !== 'temp:') plain.set(key, value);
    }
  }

  stateOf({ app, user, plain }: Known): [string, Json][] {
    const user_ = [...this.record('user', app, user)].map(([key, value]): [string, Json] => [`user:${key}`, value]);
    const app_ = [...this.record('app', app)].map(([key, value]): [string, Json] => [`app:${key}`, value]);
    return [...plain, ...user_, ...app_].toSorted(([x], [y]) => (x < y ? -1 : 1));
  }
}

/** Runs `use` on store objects of one empty medium; their tenants are what `context.tenant` says. */
export type WithStores = (
  use: (...stores: SnapshotStore[]) => Promise<void>,
  options: { snapshotPathPrefix: (options?: SessionStoreOptions) => string },
) => Promise<void>;

const snapshotPathPrefix = (options?: SessionStoreOptions): string => options?.context?.['tenant'] as string;

/** Plays a tape on the stores in turn, so that one caches data that another changes. */
async function play(stores: readonly SnapshotStore[], tape: readonly Operation[]): Promise<void> {
  const services = stores.map((store) => new SessionService(store));
  const models = new Map(['t', 'T', '../t'].map((tenant) => [tenant, new Model()]));
  for (const [at, step] of tape.entries()) {
    const service = services[at % services.length]!;
    const model = models.get(step.tenant)!;
    const caller = { appName: step.app, userId: step.user, context: { tenant: step.tenant } };
    const named = model.sessions.get(step.id);
    const own = named?.app === step.app && named.user === step.user ? named : undefined;
    const get = () => service.getSession({ ...caller, sessionId: step.id });
    const delta = fromEntries(step.state);
    if (step.op === 'create') {
      const made = await service.createSession({ ...caller, sessionId: step.id, state: delta }).catch(statusOf);
      if (named) expect(made).toBe('ALREADY_EXISTS');
      else {
        const known = { app: step.app, user: step.user, plain: new Map<string, Json>(), events: 0 };
        model.sessions.set(step.id, known);
        model.set(known, step.state);
        compare(made as StoredSession, known, model);
      }
    } else if (step.op === 'delete') {
      const { snapshots } = await service.deleteSession({ ...caller, sessionId: step.id });
      expect(snapshots).toBe(own ? own.events + 1 : 0);
      if (own) model.sessions.delete(step.id);
    } else if (step.op === 'list') {
      const { sessions } = await service.listSessions(caller);
      const expected = [...model.sessions].filter(([, { app, user }]) => app === step.app && user === step.user);
      expect(sessions.map(({ id }) => id).toSorted()).toEqual(expected.map(([id]) => id).toSorted());
    } else {
      const session = await get();
      expect(session !== undefined).toBe(own !== undefined);
      if (!session || !own) continue;
      if (step.op === 'append') {
        await service.appendEvent(session, { author: 'system', actions: { stateDelta: delta } });
        model.set(own, step.state);
        own.events++;
      } else if (step.op === 'fail') {
        const bad = { ...delta, bad: Number.NaN };
        expect(await service.appendEvent(session, { author: 'x', actions: { stateDelta: bad } }).catch(statusOf)).toBe(
          'INVALID_ARGUMENT',
        );
      }
      compare((await get())!, own, model);
    }
  }
}

function compare(session: StoredSession, known: Known, model: Model): void {
  expect(Object.entries(session.state).toSorted(([x], [y]) => (x < y ? -1 : 1))).toEqual(model.stateOf(known));
  expect(session.events).toHaveLength(known.events);
}

function fromEntries(entries: Operation['state']): { [key: string]: Json } {
  return Object.fromEntries(entries);
}

function statusOf(error: unknown): string {
  return (error as { status: string }).status;
}

/**
 * Owners never see each other's sessions or state, over one kind of store.
 *
 * @param runs Tapes of 100 operations in `npm test`, and in the long form.
 */
export function sessionFencesSuite(name: string, runs: { short: number; long: number }, withStores: WithStores): void {
  const numRuns = scale(runs.short, runs.long);
  it(`tenant fence: fence: on ${numRuns} tapes of 100 operations with hostile names a SessionService over ${name} never shows an owner the sessions or state of another (seed ${seed})`, async () => {
    // A few callers only, so that they meet.
    const property = fc.asyncProperty(
      fc.array(operation, { minLength: 100, maxLength: 100 }),
      fc.uniqueArray(callers, { minLength: 3, maxLength: 3 }),
      async (tape, few) => {
        const near = (one: string): string => few[NAMES.indexOf(one) % few.length]!;
        const steps = tape.map((step) => ({ ...step, app: near(step.app), user: near(step.user) }));
        await withStores((...stores) => play(stores, steps), { snapshotPathPrefix });
      },
    );
    await fc.assert(property, { seed, numRuns });
  });
}
