import type { InspectorWrites } from '../api.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';
import { managerOf, managerScope } from './scope.ts';

type Done = Record<string, never>;

export async function removeMemory(source: Source, params: Params): Promise<Done> {
  const id = params.confirmedId('id');
  await managerOf(source).remove({ scope: managerScope(source, params), id });
  return {};
}

export async function approveText(
  source: Source,
  params: Params,
): Promise<InspectorWrites['memory/approve']['answers']> {
  const work = { scope: managerScope(source, params), id: params.mustText('id') };
  const { status } = await managerOf(source).quarantine.approve(work);
  return { status };
}

export async function discardText(source: Source, params: Params): Promise<Done> {
  const id = params.confirmedId('id');
  await managerOf(source).quarantine.discard({ scope: managerScope(source, params), id });
  return {};
}

export async function replayJob(source: Source, params: Params): Promise<Done> {
  await managerOf(source).jobs.replay(params.mustText('jobId'), source.caller);
  return {};
}

export async function discardJob(source: Source, params: Params): Promise<Done> {
  const jobId = params.confirmedId('jobId');
  await managerOf(source).jobs.discard(jobId, source.caller);
  return {};
}
