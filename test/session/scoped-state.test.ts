import { z } from 'genkit';
import { describe, expect, it } from 'vitest';
import { StateError } from '../../src/errors.ts';
import type { Json } from '../../src/json/value.ts';
import { plainStateOf } from '../../src/session/state/plain-state.ts';
import {
  endScopes,
  renewState,
  ScopedState,
  scopeChangesOf,
  type ScopedStateOptions,
} from '../../src/session/state/scoped-state.ts';
import { Session } from '../../src/session/session.ts';
import type { ScopeId, ScopeRecord } from '../../src/store/contract.ts';
import { keyed } from '../conformance/support/value-corpus.ts';

const APP: ScopeId = { scope: 'app', appName: 'shop' };
const ADA: ScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };

/** A state whose plain keys are in `custom`. */
function open(
  options: Omit<Partial<ScopedStateOptions>, 'user' | 'app'> & {
    user?: ScopeRecord;
    app?: ScopeRecord;
    custom?: unknown;
  } = {},
) {
  let { custom } = options;
  const plain = {
    get: () => custom,
    update: (change: (current: unknown) => unknown) => void (custom = change(custom)),
  };
  const { user = {}, app = {} } = options;
  const state = new ScopedState({ plain, ...options, user: { id: ADA, record: user }, app: { id: APP, record: app } });
  return { state, custom: () => custom };
}

/** The records after a save. */
function committed(state: ScopedState, records: { user?: ScopeRecord; app?: ScopeRecord } = {}) {
  const all: Record<string, ScopeRecord | undefined> = {};
  for (const { id, change } of scopeChangesOf(state)) all[id.scope] = change(structuredClone(records[id.scope] ?? {}));
  return all;
}

function refusal(work: () => unknown): StateError {
  try {
    work();
  } catch (error) {
    if (StateError.isInstance(error)) return error;
    throw error;
  }
  throw new Error('it went through');
}

describe('a scoped state', () => {
  it('is one map over the session, its user, its app and the turn', () => {
    const { state, custom } = open({ custom: { step: 1 }, user: { theme: 'dark' }, app: { discount: 5 } });
    state.set('step', 2);
    state.set('user:size', 'L');
    state.set('app:discount', 7);
    state.set('temp:draft', { text: 'x' });
    expect(state.toObject()).toEqual({
      step: 2,
      'user:theme': 'dark',
      'user:size': 'L',
      'app:discount': 7,
      'temp:draft': { text: 'x' },
    });
    expect(state.toObject({ temp: false })).not.toHaveProperty('temp:draft');
    expect(custom()).toEqual({ step: 2 });
    expect([state.get('user:theme'), state.get('app:discount'), state.get('temp:draft'), state.get('none')]).toEqual([
      'dark',
      7,
      { text: 'x' },
      undefined,
    ]);
  });

  it('collects the changes of user and app for the save; temp and plain keys are not among them', () => {
    const { state } = open({ user: { theme: 'dark', old: 1 } });
    expect(scopeChangesOf(state)).toEqual([]);
    state.set('step', 1);
    state.set('temp:x', 1);
    expect(scopeChangesOf(state)).toEqual([]);
    state.set('user:theme', 'light');
    state.delete('user:old');
    expect(scopeChangesOf(state).map(({ id }) => id)).toEqual([ADA]);
    expect(committed(state, { user: { theme: 'dark', old: 1, another: 'turn’s' } })).toEqual({
      user: { theme: 'light', another: 'turn’s' },
    });
  });

  it('runs an update again on the value as it is when the turn is saved', () => {
    const { state } = open({ user: { logins: 1 } });
    const increment = (value: Json | undefined) => Number(value ?? 0) + 1;
    state.update('user:logins', increment);
    state.update('user:logins', increment);
    expect(state.get('user:logins')).toBe(3);
    expect(committed(state, { user: { logins: 40 } })).toEqual({ user: { logins: 42 } });
    expect(committed(state, { user: { logins: 50 } })).toEqual({ user: { logins: 52 } });
    state.set('user:logins', 7);
    state.update('user:logins', increment);
    expect(committed(state, { user: { logins: 40 } })).toEqual({ user: { logins: 8 } });
    state.update('user:logins', () => undefined);
    expect(state.get('user:logins')).toBeUndefined();
    expect(committed(state, { user: { logins: 40 } })).toEqual({ user: {} });
  });

  it('updates and deletes plain and temp keys at once', () => {
    const { state, custom } = open();
    state.update('step', (step) => Number(step ?? 0) + 1);
    state.update('step', (step) => Number(step) + 1);
    state.update('temp:x', () => [1]);
    expect([custom(), state.get('temp:x')]).toEqual([{ step: 2 }, [1]]);
    state.update('step', () => undefined);
    state.delete('temp:x');
    state.delete('never there');
    expect([custom(), state.get('temp:x')]).toEqual([{}, undefined]);
  });

  it('separates the returned changes from later ones', () => {
    const { state } = open();
    state.set('user:a', 1);
    const [first] = scopeChangesOf(state);
    state.set('user:b', 2);
    state.update('user:c', () => 3);
    const [second] = scopeChangesOf(state);
    state.update('user:d', () => 4);
    expect([first!.change({}), second!.change({})]).toEqual([{ a: 1 }, { a: 1, b: 2, c: 3 }]);
  });

  it('does not grow with how often a key is set', () => {
    const { state } = open();
    let updates = 0;
    for (let i = 0; i < 1000; i++) {
      state.update('user:n', () => ++updates);
      state.set('user:n', i);
    }
    updates = 0;
    expect([committed(state)['user'], updates]).toEqual([{ n: 999 }, 0]);
  });

  it('drops changes and temp keys with the turn, and has the records read for the next', () => {
    const { state } = open({ user: { n: 1 } });
    state.set('user:n', 2);
    state.set('temp:x', 1);
    endScopes(state);
    expect(state.get('user:n')).toBe(1);
    renewState(state, { user: { n: 9 } });
    expect([scopeChangesOf(state), state.get('temp:x'), state.get('user:n')]).toEqual([[], undefined, 9]);
    const temp = new Map<string, Json>([['x', 1]]);
    const shared = open({ temp }).state;
    endScopes(shared);
    expect(shared.get('temp:x')).toBe(1);
  });

  it('keeps what was changed during a save for the next one, on what is read meanwhile', () => {
    const { state } = open({ user: { n: 1 } });
    const add = (n: Json | undefined) => Number(n ?? 0) + 1;
    state.update('user:n', add);
    const saved = scopeChangesOf(state);
    state.update('user:n', add);
    state.set('user:late', true);
    endScopes(state, saved);
    expect(state.toObject()).toEqual({ 'user:n': 3, 'user:late': true });
    renewState(state, { user: { n: 10 } });
    expect(state.toObject()).toEqual({ 'user:n': 11, 'user:late': true });
    expect(committed(state, { user: { n: 20 } })).toEqual({ user: { n: 21, late: true } });
  });

  it('undoes the unsaved changes when the next save fails, and no saved ones', () => {
    const { state } = open({ user: { n: 1 } });
    let runs = 0;
    state.update('user:n', (n) => Number(n) + ++runs);
    state.set('user:kept', true);
    const saved = scopeChangesOf(state);
    state.set('user:n', 3);
    state.delete('user:kept');
    state.set('user:late', true);
    endScopes(state, saved);
    expect(state.toObject()).toEqual({ 'user:n': 3, 'user:late': true });
    endScopes(state);
    expect(state.toObject()).toEqual({ 'user:n': 2, 'user:kept': true });
    expect([scopeChangesOf(state), runs]).toEqual([[], 1]);
  });

  it('shares no value with its user', () => {
    const record = { list: [1] };
    const { state } = open({ user: record });
    const value = { list: [1] };
    for (const key of ['plain', 'user:x', 'temp:x'] as const) {
      state.set(key, value);
      (state.get(key) as { list: number[] }).list.push(2);
      expect(state.get(key)).toEqual({ list: [1] });
    }
    value.list.push(3);
    (state.get('user:list') as number[]).push(2);
    (state.toObject()['user:list'] as number[]).push(2);
    state.update('user:list', (list) => {
      (list as number[]).push(2);
      return list;
    });
    const [change] = scopeChangesOf(state);
    const first = change!.change({ list: [1] })!;
    (first['x'] as { list: number[] }).list.push(9);
    expect(change!.change({ list: [1] })).toEqual({ list: [1, 2], x: { list: [1] } });
    expect([record, state.get('plain')]).toEqual([{ list: [1] }, { list: [1] }]);
  });

  it('takes no members, and is written as JSON without temp: keys', () => {
    const { state } = open({ custom: { step: 1 }, user: { theme: 'dark' } });
    state.set('temp:x', 1);
    expect(() => Object.assign(state, { lost: 1 })).toThrow(TypeError);
    expect(JSON.stringify({ state })).toBe('{"state":{"step":1,"user:theme":"dark"}}');
  });

  it('treats any key as data', () => {
    for (const key of [
      '__proto__',
      'constructor',
      'toString',
      '',
      'a.b',
      '\u0000',
      '\uD800',
      'other:x',
      'USER:x',
      'user',
    ]) {
      for (const prefix of ['', 'user:', 'app:', 'temp:'] as const) {
        const { state, custom } = open();
        expect(state.get(`${prefix}${key}`)).toBeUndefined();
        state.set(`${prefix}${key}`, { deep: [1] });
        expect(state.get(`${prefix}${key}`)).toEqual({ deep: [1] });
        expect(Object.entries(state.toObject())).toEqual([[`${prefix}${key}`, { deep: [1] }]]);
        if (prefix === '') expect(custom()).toEqual(keyed(key, { deep: [1] }));
        if (prefix === 'user:') expect(committed(state)).toEqual({ user: keyed(key, { deep: [1] }) });
        state.delete(`${prefix}${key}`);
        expect(state.toObject()).toEqual({});
      }
    }
    expect(({} as Record<string, unknown>)['deep']).toBeUndefined();
  });

  it('refuses what JSON can’t hold, with key and path, and changes nothing', () => {
    for (const key of ['plain', 'user:x', 'app:x', 'temp:x'] as const) {
      const { state } = open();
      state.set(key, 1);
      const error = refusal(() => state.set(key, { list: [{ bad: 1n }] } as never));
      const path = key === 'temp:x' ? '' : '/list/0/bad';
      expect([error.status, error.key, error.path]).toEqual(['INVALID_ARGUMENT', key, path]);
      const reason = key === 'temp:x' ? ': one of its members' : ', at "/list/0/bad": it is a BigInt';
      expect(error.message).toContain(`State key ${JSON.stringify(key)}${reason}`);
      refusal(() => state.set(key, undefined as never));
      refusal(() => state.update(key, () => Number.NaN));
      expect(() => state.update(key, (async () => 1) as never)).toThrow('not a promise');
      expect(state.get(key)).toBe(1);
    }
  });

  it('names no member of a temp: value in an error', () => {
    const { state } = open({ limits: { maxDepth: 2 } });
    const circle: { [name: string]: unknown } = { canary: {} };
    circle['canary'] = { canary: circle };
    for (const value of [{ canary: 1n }, circle, { canary: { canary: { canary: {} } } }]) {
      const error = refusal(() => state.set('temp:x', value as never));
      expect(JSON.stringify([error.message, error.path, error.reason])).not.toContain('canary');
    }
    expect(refusal(() => state.set('temp:x', 1n as never)).reason).toContain('BigInt');
  });

  it('limits the length of keys, and the size and the depth of values', () => {
    const { state } = open({ limits: { maxKeyLength: 10, maxValueBytes: 20, maxDepth: 2 } });
    state.set('user:12345', 'x'.repeat(18));
    state.set('deep', [[1]]);
    expect(refusal(() => state.set('user:123456', 1)).reason).toContain('11 characters; at most 10');
    expect(refusal(() => state.get('x'.repeat(11))).reason).toContain('at most 10');
    expect(refusal(() => state.set('a', 'x'.repeat(19))).reason).toContain('more than 20 bytes');
    const deep = refusal(() => state.set('a', { b: [[1]] }));
    expect([deep.path, deep.reason]).toEqual(['/b/0', expect.stringContaining('deeper than 2 levels')]);
    expect(refusal(() => state.set(7 as never, 1)).reason).toContain('must be a string');
    expect(() => open({ limits: { maxDepht: 1 } as never })).toThrow('maxDepht');
    expect(() => open({ limits: { maxKeyLength: 0 } })).toThrow('maxKeyLength');
  });

  it('limits the result of an update at the save, too', () => {
    const { state } = open({ limits: { maxValueBytes: 20 } });
    state.update('user:text', (text) => `${(text as string | undefined) ?? ''}x`);
    expect(refusal(() => committed(state, { user: { text: 'x'.repeat(18) } })).key).toBe('user:text');
  });

  it('checks each key against the schema of its scope', () => {
    const schemas = {
      plain: z.object({ step: z.number() }).strict(),
      user: z.object({ theme: z.enum(['dark', 'light']) }),
      app: z.object({ tags: z.array(z.string()) }),
    };
    const { state } = open({ schemas, user: { theme: 'pink' } });
    state.set('step', 1);
    state.set('user:unknown', 1);
    expect(refusal(() => state.set('stepp', 1)).reason).toContain('no such key');
    expect(refusal(() => state.set('step', 'one')).reason).toContain('type number, not string');
    const nested = refusal(() => state.set('app:tags', ['a', 1]));
    expect([nested.key, nested.path]).toEqual(['app:tags', '/1']);
    expect(refusal(() => state.set('user:theme', 'secret')).message).not.toContain('secret');
    // The stored value may be older than the schema.
    expect(refusal(() => state.get('user:theme')).key).toBe('user:theme');
    state.set('user:theme', 'dark');
    expect(state.get('user:theme')).toBe('dark');
  });

  it('checks each key by an object that is refined, and by a record', () => {
    const refined = z.object({ n: z.number(), m: z.number() }).refine(({ n, m }) => n < m);
    const { state } = open({
      schemas: { plain: refined.refine(() => true), user: z.record(z.string(), z.number()), app: z.any() },
    });
    for (const key of ['n', 'user:n'] as const) {
      expect(refusal(() => state.set(key, 'one')).reason).toContain('type number, not string');
      state.set(key, 1);
    }
    state.set('app:n', 'one');
    expect(state.toObject()).toEqual({ n: 1, 'user:n': 1, 'app:n': 'one' });
  });

  it('refuses keys of a scope that it does not have, and says what they need', () => {
    const session = new Session();
    const state = new ScopedState({ plain: plainStateOf(session) });
    for (const work of [
      () => state.get('user:x'),
      () => state.set('user:x', 1),
      () => state.update('app:x', () => 1),
      () => state.delete('app:x'),
    ]) {
      expect(work).toThrow(expect.objectContaining({ status: 'FAILED_PRECONDITION' }));
      expect(work).toThrow('a store that keeps scopes');
    }
    state.set('x', 1);
    expect(state.toObject()).toEqual({ x: 1 });
  });

  it('keeps plain keys in the session’s custom state, where it is', () => {
    const session = new Session<Record<string, Json>>({ custom: { a: 1 } });
    const state = new ScopedState({ plain: plainStateOf(session) });
    let heard = 0;
    session.on('customChanged', () => heard++);
    const held = session.getCustom();
    state.set('b', 2);
    expect([session.getCustom() === held, held, heard]).toEqual([true, { a: 1, b: 2 }, 1]);
    session.updateCustom(() => Object.freeze({ a: 1 }));
    state.set('b', 3);
    expect(session.getCustom()).toEqual({ a: 1, b: 3 });
    const list = new Session<unknown>({ custom: [1] });
    const none = new ScopedState({ plain: plainStateOf(list) });
    expect([none.get('0'), none.toObject()]).toEqual([undefined, {}]);
    expect(() => none.set('a', 1)).toThrow('not a plain object');
    expect(list.getCustom()).toEqual([1]);
  });
});
