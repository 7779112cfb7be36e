import { inspect } from 'node:util';
import type { SessionState } from 'genkit/beta';
import { describe, expect, it, vi } from 'vitest';
import { handOut } from '../../../src/snapshot/hand-out.ts';

const META = { snapshotId: 'one', createdAt: '2026-01-01T00:00:00.000Z', status: 'completed' } as const;

describe('a snapshot that is handed out', () => {
  it('copies its state when it is looked at, once', () => {
    const copy = vi.fn((): SessionState => ({ custom: { n: 1 } }));
    const snapshot = handOut(META, copy);
    expect(snapshot.status).toBe('completed');
    expect(copy).not.toHaveBeenCalled();
    expect(snapshot.state).toBe(snapshot.state);
    expect({ ...snapshot }.state).toBe(snapshot.state);
    expect(copy).toHaveBeenCalledTimes(1);
  });

  it('looks like any other object: compared, cloned, spread, printed and written as JSON', () => {
    const plain = { ...META, state: { custom: { n: 1 } } };
    const snapshot = handOut(META, () => ({ custom: { n: 1 } }));
    expect(snapshot).toEqual(plain);
    expect(structuredClone(snapshot)).toStrictEqual(plain);
    expect({ ...snapshot }).toStrictEqual(plain);
    expect(JSON.stringify(snapshot)).toBe(JSON.stringify(plain));
    expect(inspect(snapshot)).toBe(inspect(plain));
    expect(Object.keys(snapshot)).toEqual(Object.keys(plain));
  });

  it('belongs to the caller: its state may be replaced and removed, unless it was frozen', () => {
    const snapshot = handOut(META, () => ({ custom: { n: 1 } }));
    snapshot.state = { custom: { n: 2 } };
    expect(snapshot.state).toEqual({ custom: { n: 2 } });
    delete (snapshot as { state?: unknown }).state;
    expect('state' in snapshot).toBe(false);
    const frozen = Object.freeze(handOut(META, () => ({ custom: { n: 1 } })));
    expect(() => Object.assign(frozen, { state: {} })).toThrow(TypeError);
    expect(frozen.state).toEqual({ custom: { n: 1 } });
  });

  it('has no state when there is none', () => {
    expect(handOut(META)).toStrictEqual({ ...META });
  });
});
