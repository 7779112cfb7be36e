/** The owner of a kept stream, and the count of its connected clients. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConnectedClients } from '../../../src/server/answer/connected-clients.ts';
import { describeOwner } from '../../../src/server/answer/stream-key.ts';

describe('the connected clients', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('abort the turn when none was connected for the grace time, counted from the last disconnect', () => {
    const abortTurn = vi.fn();
    const clients = new ConnectedClients(1000, abortTurn);
    const [leaveFirst, leaveSecond] = [clients.add(), clients.add()];
    leaveFirst();
    leaveFirst();
    vi.advanceTimersByTime(5000);
    expect(abortTurn).not.toHaveBeenCalled();
    leaveSecond();
    vi.advanceTimersByTime(999);
    const leaveThird = clients.add();
    vi.advanceTimersByTime(5000);
    expect(abortTurn).not.toHaveBeenCalled();
    leaveThird();
    vi.advanceTimersByTime(1000);
    expect(abortTurn).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('leave no timer when the turn ends, whether clients leave before or after, nor without a grace time', () => {
    const abortTurn = vi.fn();
    const before = new ConnectedClients(1000, abortTurn);
    before.add()();
    before.end();
    const after = new ConnectedClients(1000, abortTurn);
    const leave = after.add();
    after.end();
    leave();
    after.abort();
    new ConnectedClients(Infinity, abortTurn).add()();
    expect(vi.getTimerCount()).toBe(0);
    expect(abortTurn).not.toHaveBeenCalled();
  });
});

describe('the owner of a stream', () => {
  it('is the same for any order of the context’s members, and for a refreshed token', () => {
    const token = (iat: number) => ({ sub: 'ada', iat, exp: iat + 1, firebase: { tenant: 't' } });
    const first = describeOwner({ auth: { uid: 'ada', rawToken: '1', token: token(1) }, app: undefined });
    expect(describeOwner({ auth: { token: token(2), rawToken: '2', uid: 'ada' } })).toBe(first);
  });

  it('differs for each user, tenant and shape', () => {
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

  it('is refused for values that JSON does not distinguish', () => {
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
