import { GenkitError } from 'genkit';
import { InMemorySessionStore, type RecordStore, type SessionStore } from 'genkitx-agents';
import { describe, expect, it } from 'vitest';
import { boundedStore } from '../../../src/agent/save/store-calls.ts';

const NOTE = { sessionId: 'chat', kind: 'note', key: 'one' };

/** A store in memory whose next record calls run `faults`, in order, and the store as the runtime calls it. */
function faulty(faults: readonly (() => Promise<never>)[], timeoutMs = 10_000) {
  const left = [...faults];
  const store = new InMemorySessionStore();
  for (const name of ['readRecords', 'writeRecord'] as const) {
    const sound = store[name].bind(store) as (options: object) => Promise<never>;
    Object.assign(store, { [name]: (options: object) => left.shift()?.() ?? sound(options) });
  }
  return { left, bounded: boundedStore(store, timeoutMs) as SessionStore & RecordStore };
}

const failing = (status: 'UNAVAILABLE' | 'ABORTED') => () =>
  Promise.reject(new GenkitError({ status, message: 'fault' }));
const stalling = () => new Promise<never>(() => {});

describe('the session records of a store as the runtime calls it', () => {
  it('a call with a transient failure is retried', async () => {
    const { left, bounded } = faulty([failing('UNAVAILABLE'), failing('UNAVAILABLE')]);
    const revision = await bounded.writeRecord({ ...NOTE, value: 1, expectedRevision: null });
    expect(left).toEqual([]);
    left.push(failing('UNAVAILABLE'));
    expect(await bounded.readRecords({ sessionId: 'chat', kind: 'note' })).toEqual([
      { kind: 'note', key: 'one', value: 1, revision },
    ]);
  });

  it('a refusal is not retried', async () => {
    const { left, bounded } = faulty([failing('ABORTED'), stalling]);
    await expect(bounded.writeRecord({ ...NOTE, value: 1 })).rejects.toThrow('fault');
    expect(left).toEqual([stalling]);
  });

  it('a call without an answer fails when its time is used up', async () => {
    const { bounded } = faulty([stalling, stalling], 20);
    await expect(bounded.writeRecord({ ...NOTE, value: 1 })).rejects.toMatchObject({
      status: 'DEADLINE_EXCEEDED',
      message: expect.stringContaining('did not answer a write within 20 ms') as string,
    });
    await expect(bounded.readRecords(NOTE)).rejects.toThrow('did not answer a read within 20 ms');
  });

  it('a store without records has none', () => {
    const bounded = boundedStore({ getSnapshot: async () => undefined, saveSnapshot: async () => null }, 20);
    expect(Object.keys(bounded)).toEqual(['getSnapshot', 'saveSnapshot']);
  });
});
