import { readOrganized } from '../pipeline/commit/organize.ts';
import { NOTES, PIPELINE_KEYS, type Pipeline, type ScopeWork } from '../pipeline/pipeline.ts';
import type { MemoryExportLine, QuarantinedText } from '../types.ts';
import { memoriesOf } from './prune.ts';

/** Everything that the store holds of a scope that says something about it. */
export async function* exportScope(
  pipeline: Pipeline,
  work: ScopeWork,
  quarantined: () => Promise<readonly QuarantinedText[]>,
): AsyncGenerator<MemoryExportLine> {
  const { store } = pipeline;
  const { id, options } = work;
  let memories = 0;
  for await (const memory of memoriesOf(pipeline, work)) {
    yield { kind: 'memory', memory, revisions: await store.revisions(id, memory.id, options) };
    memories++;
  }
  const { profile, summary } = await readOrganized(pipeline, work);
  if (profile !== undefined) yield { kind: 'profile', profile };
  if (summary !== undefined) yield { kind: 'summary', summary };
  for (const text of await quarantined()) yield { kind: 'quarantine', quarantine: text };
  let cursor: string | undefined;
  do {
    const page = await store.listJobs({ ...options, scope: id, limit: 1000, ...(cursor !== undefined && { cursor }) });
    for (const job of page.items) yield { kind: 'job', job };
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const { notes } = await store.notes(id, NOTES.pipeline, { ...options, keys: [PIPELINE_KEYS.consent] });
  const consent = (notes[0]?.value as { consent: 'on' | 'off' } | undefined)?.consent;
  if (consent !== undefined) yield { kind: 'consent', consent };
  yield { kind: 'end', memories };
}
