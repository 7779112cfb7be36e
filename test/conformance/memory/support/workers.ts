import type { MemoryStore } from '../../../../src/store/memory/contract.ts';
import { ADA, note } from './drafts.ts';

/** Reads the memory `seat`, adds 1 to `times`, commits at the same revision, and tries again if another commit came first. */
export async function corroborate(store: MemoryStore): Promise<void> {
  for (;;) {
    const expectedRevision = await store.revision(ADA);
    const [memory] = await store.get(ADA, ['seat']);
    try {
      const times = (memory!['times'] as number) + 1;
      await store.commit(ADA, [{ op: 'put', memory: { ...memory!, times } }], { expectedRevision });
      return;
    } catch (error) {
      if ((error as { status?: unknown }).status !== 'ABORTED') throw error;
    }
  }
}

/** Runs due jobs until there are none. Each job adds 1 to the note of its source. */
export async function workOff(store: MemoryStore, owner: string): Promise<void> {
  for (;;) {
    const job = await store.claimJob({ owner, leaseMs: 60_000 });
    if (!job) {
      const { items } = await store.listJobs({ limit: 1 });
      if (items.length === 0) return;
      continue;
    }
    const { notes } = await store.notes(job.scope, 'count', { keys: [job.sourceId] });
    const count = ((notes[0]?.value as number | undefined) ?? 0) + 1;
    await store.commit(job.scope, [note('count', job.sourceId, count)], { job: { id: job.id, owner } });
  }
}
