import type { Memory } from '../../store/memory/contract.ts';
import { readDerived } from '../pipeline/commit/derived-notes.ts';
import { readConsent } from '../pipeline/records/learning-state.ts';
import { waitingTexts } from './review.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { ScopeTarget } from '../scopes.ts';
import type { MemoryExportLine } from '../types.ts';
import { jobsOf, memoriesOf } from '../pipeline/records/list-all.ts';

/** Exports all data of a scope, apart from internal notes. */
export async function* exportScope(pipeline: Pipeline, target: ScopeTarget): AsyncGenerator<MemoryExportLine> {
  const { store } = pipeline;
  const { id, options } = target;
  yield* exportWaiting(pipeline, target, () => true);
  let memories = 0;
  for await (const memory of currentMemories(pipeline, target)) {
    yield { kind: 'memory', memory, revisions: await store.revisions(id, memory.id, options) };
    memories++;
  }
  // Exports a stored profile even if it has an earlier schema.
  const { profile, summary } = await readDerived({ ...pipeline, profile: undefined }, target);
  if (profile !== undefined) yield { kind: 'profile', profile };
  if (summary !== undefined) yield { kind: 'summary', summary };
  const consent = await readConsent(pipeline, target);
  if (consent !== undefined) yield { kind: 'consent', consent };
  yield { kind: 'end', memories };
}

/**
 * Exports the jobs and quarantined texts of some sources. A worker may turn a job into a quarantined text or a memory during the export.
 * Reading jobs, then texts, then memories makes sure that nothing is missed.
 */
export async function* exportWaiting(
  pipeline: Pipeline,
  target: ScopeTarget,
  isWanted: (sourceId: string) => boolean,
): AsyncGenerator<MemoryExportLine> {
  for await (const job of jobsOf(pipeline, { ...target.options, scope: target.id }))
    if (isWanted(job.sourceId)) yield { kind: 'job', job };
  for (const text of await waitingTexts(pipeline, target))
    if (isWanted(text.sourceId)) yield { kind: 'quarantine', quarantine: text };
}

/**
 * All memories of a scope. A memory that changes during the export is returned again, because it moves to the first page, which was read
 * before.
 */
async function* currentMemories(pipeline: Pipeline, target: ScopeTarget): AsyncGenerator<Memory> {
  const exported = new Map<string, string>();
  for (let before: number | undefined; ;) {
    const revision = await pipeline.store.revision(target.id, target.options);
    if (revision === before) return;
    before = revision;
    for await (const memory of memoriesOf(pipeline, target)) {
      // The revision alone is not enough: it restarts at 1 if the memory was removed and made again.
      const version = `${memory.revision} ${memory.updatedAt}`;
      // The last changed memories come first, so all following memories were exported before.
      if (exported.get(memory.id) === version) break;
      exported.set(memory.id, version);
      yield memory;
    }
  }
}
