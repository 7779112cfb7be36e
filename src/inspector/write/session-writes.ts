import { abortRun } from '../../agent/save/abort-snapshot.ts';
import type { DeleteResult } from '../../store/contract.ts';
import type { SnapshotStatus } from '../api.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';

export async function abort(source: Source, params: Params): Promise<{ status?: SnapshotStatus }> {
  const status = await abortRun(source.store, params.mustText('snapshotId'), source.caller);
  return status ? { status } : {};
}

export async function deleteSession(source: Source, params: Params): Promise<DeleteResult> {
  const sessionId = params.confirmedId('sessionId');
  return source.having('delete').deleteSession({ ...source.caller, sessionId });
}
