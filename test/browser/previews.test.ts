import { InMemorySessionStore, type SnapshotLookup } from 'genkitx-agents';
import { expect, it } from 'vitest';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { Previews } from '../../samples/support/server/previews.ts';

/** Counts what is read of it. */
class CountingStore extends InMemorySessionStore<SupportState> {
  reads = 0;
  atOnce = 0;
  #running = 0;

  override async getSnapshot(lookup: SnapshotLookup) {
    this.reads++;
    this.atOnce = Math.max(this.atOnce, ++this.#running);
    try {
      return await super.getSnapshot(lookup);
    } finally {
      this.#running--;
    }
  }
}

it('Previews read each state once, few at a time, the most wanted first, and not all of very many at first', async () => {
  const store = new CountingStore();
  const ids = Array.from({ length: 700 }, (_, number) => `snapshot-${number}`);
  for (const id of ids) {
    const messages = [{ role: 'user' as const, content: [{ text: id }] }];
    await store.saveSnapshot(id, () => ({
      sessionId: 's',
      status: 'completed',
      state: { messages, custom: { turns: 1, refunds: [] } },
    }));
  }
  store.reads = store.atOnce = 0;

  const previews = new Previews(store);
  const first = await previews.of(ids);
  expect([...first.keys()].toSorted()).toEqual(ids.slice(0, 500).toSorted());
  expect(first.get('snapshot-7')).toMatchObject({ asked: 'snapshot-7' });
  expect(store).toMatchObject({ reads: 500, atOnce: 4 });

  expect((await previews.of(ids)).size).toBe(700);
  expect((await previews.of(ids)).size).toBe(700);
  expect(store.reads).toBe(700);
});
