/** The owner of a kept stream, and the presence of its clients. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Presence } from '../../../src/server/answer/presence.ts';
import { describeOwner } from '../../../src/server/answer/stream-key.ts';

describe('presence', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('gives up when no client has been connected for the grace time, counted from the last disconnect', () => {
    const giveUp = vi.fn();
    const presence = new Presence(1000, giveUp);
    const [leaveFirst, leaveSecond] = [presence.join(), presence.join()];
    leaveFirst();
    leaveFirst();
    vi.advanceTimersByTime(5000);
    expect(giveUp).not.toHaveBeenCalled();
    leaveSecond();
    vi.advanceTimersByTime(999);
    const leaveThird = presence.join();
    vi.advanceTimersByTime(5000);
    expect(giveUp).not.toHaveBeenCalled();
    leaveThird();
    vi.advanceTimersByTime(1000);
    expect(giveUp).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('leaves no timer when the turn ends, whether clients leave before or after, nor without a grace time', () => {
    const giveUp = vi.fn();
    const before = new Presence(1000, giveUp);
    before.join()();
    before.end();
    const after = new Presence(1000, giveUp);
    const leave = after.join();
    after.end();
    leave();
    after.abort();
    new Presence(Infinity, giveUp).join()();
    expect(vi.getTimerCount()).toBe(0);
    expect(giveUp).not.toHaveBeenCalled();
  });
});

describe('the owner of a stream', () => {
  it('is the same whatever the order of the context’s members, and through a refreshed token', () => {
    const token = (iat: number) => ({ sub: 'ada', iat, exp: iat + 1, firebase: { tenant: 't' } });
    const first = describeOwner({ auth: { uid: 'ada', rawToken: '1', token: token(1) }, app: undefined });
    expect(describeOwner({ auth: { token: token(2), rawToken: '2', uid: 'ada' } })).toBe(first);
  });

  it('is another for each other user, tenant and shape', () => {
    const contexts = [
      {},
      { auth: {} },
      { auth: { uid: 'ada' } },
      { auth: { uid: 'ADA' } },
      { auth: { uid: 'ada' }, tenant: 't' },
      { auth: { uid: 'ada', tenant: 't' } },
      { auth: { uid: ['ada'] } },
      { auth: [['uid', 'ada']] },
      { auth: { 'uid":"ada': 1 } },
      { auth: { apiKey: 'k' } },
      { auth: JSON.parse('{"__proto__": {"uid": "ada"}}') as object },
    ];
    expect(new Set(contexts.map((context) => describeOwner(context as never))).size).toBe(contexts.length);
  });

  it('is not made up of what JSON does not show', () => {
    class User {
      readonly #uid = 'ada';
      get uid() {
        return this.#uid;
      }
    }
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    for (const hidden of [new User(), new Map([['uid', 1]]), () => 1, Symbol('u'), 10n, cyclic]) {
      expect(() => describeOwner({ hidden })).toThrow();
    }
    expect(describeOwner({ db: new User(), auth: { uid: 'ada' } }, ({ auth }) => auth?.uid)).toBe('"ada"');
    expect(() => describeOwner({}, ({ auth }) => auth?.uid)).toThrow('no owner');
  });
});
