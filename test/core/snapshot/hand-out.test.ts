import { inspect } from 'node:util';
import type { SessionState } from 'genkit/beta';
import { describe, expect, it, vi } from 'vitest';
import { handOut } from '../../../src/snapshot/hand-out.ts';

const META = { snapshotId: 'one', createdAt: '2026-01-01T00:00:00.000Z', status: 'completed' } as const;

describe('a snapshot that is handed out', () => {
  it('copies its state when it is looked at, once', () => {
    const state = vi.fn((): SessionState => ({ custom: { n: 1 } }));
    const snapshot = handOut(META, { state });
    expect(snapshot.status).toBe('completed');
    expect(state).not.toHaveBeenCalled();
    expect(snapshot.state).toBe(snapshot.state);
    expect({ ...snapshot }.state).toBe(snapshot.state);
    expect(state).toHaveBeenCalledTimes(1);
  });

  it('looks like any other object: compared, cloned, spread, printed and written as JSON', () => {
    const plain = { ...META, state: { custom: { n: 1 } } };
    const snapshot = handOut(META, { state: () => ({ custom: { n: 1 } }) });
    expect(snapshot).toEqual(plain);
    expect(structuredClone(snapshot)).toStrictEqual(plain);
    expect({ ...snapshot }).toStrictEqual(plain);
    expect(JSON.stringify(snapshot)).toBe(JSON.stringify(plain));
    expect(inspect(snapshot)).toBe(inspect(plain));
    expect(Object.keys(snapshot)).toEqual(Object.keys(plain));
  });

  it('belongs to the caller: its state may be replaced and removed, unless it was frozen', () => {
    const snapshot = handOut(META, { state: () => ({ custom: { n: 1 } }) });
    snapshot.state = { custom: { n: 2 } };
    expect(snapshot.state).toEqual({ custom: { n: 2 } });
    delete (snapshot as { state?: unknown }).state;
    expect('state' in snapshot).toBe(false);
    const frozen = Object.freeze(handOut(META, { state: () => ({ custom: { n: 1 } }) }));
    expect(() => Object.assign(frozen, { state: {} })).toThrow(TypeError);
    expect(frozen.state).toEqual({ custom: { n: 1 } });
  });

  it('is a copy, or frozen, so that its source never changes', () => {
    const stored = { custom: { list: [{ n: 1 }], ['__proto__']: { odd: true } } };
    const state = () => stored;
    const copied = handOut<typeof stored.custom>(META, { state });
    expect(copied.state).toStrictEqual(stored);
    copied.state!.custom!.list[0]!.n = 2;
    expect(stored.custom.list[0]!.n).toBe(1);
    const frozen = handOut<typeof stored.custom>(META, { state, frozen: true });
    expect(frozen.state).toBe(stored);
    expect(() => Object.assign(frozen.state!.custom!.list[0]!, { n: 2 })).toThrow(TypeError);
    expect(() => frozen.state!.custom!.list.push({ n: 2 })).toThrow(TypeError);
  });

  it('has no state when there is none', () => {
    expect(handOut(META)).toStrictEqual({ ...META });
  });
});
