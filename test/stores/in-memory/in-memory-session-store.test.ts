import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { InMemorySessionStore } from 'genkitx-agents';
import { genkit } from 'genkit/beta';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { childScript } from '../../support/child-script.ts';
import { makeTurn } from '../make-turn.ts';

describe('InMemorySessionStore', () => {
  it.each([
    [{ rejectBranchingSession: true }, "InMemorySessionStore has no option 'rejectBranchingSession'"],
    [{ rejectBranchingSessions: 1 }, 'rejectBranchingSessions must be true or false'],
    [{ snapshotPathPrefix: 'tenant' }, 'snapshotPathPrefix must be a function'],
  ])('refuses the options %j with one sentence', (options, message) => {
    expect(() => new InMemorySessionStore(options as object)).toThrow(message);
  });

  it('has capabilities that a caller cannot change', () => {
    const { capabilities } = new InMemorySessionStore();
    expect(capabilities).toMatchObject({
      watch: true,
      list: true,
      durable: false,
      watchAcrossProcesses: false,
      scopes: true,
    });
    expect(Object.isFrozen(capabilities)).toBe(true);
  });

  it('refuses a mutator and a callback that can’t be called', async () => {
    const store = new InMemorySessionStore();
    const refusal = 'INVALID_ARGUMENT: The mutator must be a function';
    await expect(store.saveSnapshot('one', {} as never)).rejects.toThrow(refusal);
    expect(() => store.onSnapshotStateChange('one', 7 as never)).toThrow('callback must be a function');
  });

  it('refuses the result of a mutator that has saved the snapshot itself, because it would overwrite that save', async () => {
    const store = new InMemorySessionStore();
    await store.saveSnapshot('one', () => makeTurn({ status: 'pending' }));
    const nested = store.saveSnapshot('one', (current) => {
      void store.saveSnapshot('one', (inner) => ({ ...inner!, state: { custom: { inner: true } } }));
      return { ...current!, state: { custom: { outer: true } } };
    });
    await expect(nested).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    expect((await store.getSnapshot({ snapshotId: 'one' }))?.state).toEqual({ custom: { inner: true } });
  });

  it('runs a mutator on the snapshot that its result names before it rewrites it', async () => {
    const store = new InMemorySessionStore();
    await store.saveSnapshot('one', () => makeTurn({ status: 'pending', state: { custom: { n: 1 } } }));
    const id = await store.saveSnapshot(undefined, (current) => {
      const n = (current?.state?.custom as { n: number } | undefined)?.n ?? 0;
      return { ...makeTurn({ status: 'pending', state: { custom: { n: n + 1 } } }), snapshotId: 'one' };
    });
    expect(id).toBe('one');
    expect((await store.getSnapshot({ snapshotId: 'one' }))?.state).toEqual({ custom: { n: 2 } });
  });

  it('prunes records that wait more than an hour for the first snapshot of their session', async () => {
    const store = new InMemorySessionStore();
    const countOf = async (sessionId: string): Promise<number> => (await store.readRecords({ sessionId })).length;
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-01-01T00:00:00Z') });
    try {
      await store.saveSnapshot('one', () => makeTurn());
      for (const sessionId of ['chat', 'waits'])
        await store.writeRecord({ sessionId, kind: 'note', key: 'a', value: 1 });
      vi.setSystemTime('2026-01-01T01:00:00Z');
      await store.writeRecord({ sessionId: 'waits', kind: 'note', key: 'b', value: 2 });
      await store.prune({ maxChainLength: 1 });
      expect(await countOf('waits')).toBe(2);
      vi.setSystemTime('2026-01-01T01:00:01Z');
      await store.prune({ maxChainLength: 1 }, { dryRun: true });
      expect(await countOf('waits')).toBe(2);
      await store.prune({ maxChainLength: 1 });
      expect((await store.readRecords({ sessionId: 'waits' })).map(({ key }) => key)).toEqual(['b']);
      expect(await countOf('chat')).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it('serves Genkit’s own agents: two turns, resumed by sessionId, in one line', async () => {
    const ai = genkit({});
    const echo = ai.defineModel({ name: 'echo' }, async (request) => ({
      message: { role: 'model', content: [{ text: `${request.messages.length} messages` }] },
      finishReason: 'stop',
    }));
    const store = new InMemorySessionStore<{ n: number }>();
    const agent = ai.defineAgent({ name: 'echoes', model: echo, store });
    const first = await agent.chat({ sessionId: 'chat' }).send('hello');
    const second = await agent.chat({ sessionId: 'chat' }).send('again');
    expect([first.text, second.text]).toEqual(['1 messages', '3 messages']);
    const { items } = await store.listSnapshots({ sessionId: 'chat' });
    expect(items.map((item) => [item.snapshotId, item.parentId, item.status])).toEqual([
      [first.snapshotId, undefined, 'completed'],
      [second.snapshotId, first.snapshotId, 'completed'],
    ]);
  });
});

describe('the heap', () => {
  interface Growth {
    information: number;
    session: number;
    listeners: number;
    afterDelete: number;
    afterPrune: number;
    afterClose: number;
    grown: number;
    slid: number;
  }
  let growth: Growth;

  beforeAll(async () => {
    const script = await childScript(new URL('heap-growth.ts', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', script]);
    growth = JSON.parse(stdout) as Growth;
    console.log(`heap growth in bytes: ${stdout.trim()}`);
  });

  it('grows by at most 3 bytes for a byte of new information in 500 turns', () => {
    expect(growth.information).toBeGreaterThan(1_000_000);
    expect(growth.session / growth.information).toBeLessThan(3);
  });

  it('keeps no data of a session that was deleted or pruned, of a closed store, or of ended watchers', () => {
    const { listeners, afterDelete, afterPrune, afterClose } = growth;
    // What is left is the engine's own: compiled code, mostly.
    for (const left of [listeners, afterDelete, afterPrune, afterClose]) expect(left).toBeLessThan(growth.session / 3);
  });

  it('does not take a pointer for each element of each version of a long list, growing or sliding', () => {
    // 200 versions of 4,000 pointers would be 6.4 MB. The elements themselves are about 0.3 MB.
    for (const bytes of [growth.grown, growth.slid]) expect(bytes).toBeLessThan(2_000_000);
  });
});
