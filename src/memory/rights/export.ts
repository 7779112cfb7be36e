import { readOrganized } from '../pipeline/commit/organize.ts';
import { readConsent } from '../pipeline/guard/consent.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { ScopeTarget } from '../scopes.ts';
import type { MemoryExportLine, QuarantinedText } from '../types.ts';
import { jobsOf, memoriesOf } from './contents.ts';

/** All data of a scope, apart from internal notes. */
export async function* exportScope(
  pipeline: Pipeline,
  work: ScopeTarget,
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
  for await (const job of jobsOf(pipeline, work)) yield { kind: 'job', job };
  const consent = await readConsent(pipeline, work);
  if (consent !== undefined) yield { kind: 'consent', consent };
  yield { kind: 'end', memories };
}
