import { quote } from '../../src/errors.ts';
import { assertId, reserveSnapshotId } from '../../src/snapshot/ids.ts';
import type { SessionSnapshotInput } from '../../src/snapshot/snapshot.ts';
import { CreateSnapshot } from './create-snapshot.ts';
import { FinalRefusal, Stale, tooContended } from './failures.ts';
import { RewriteSnapshot } from './rewrite-snapshot.ts';
import type { SaveRequest, Trust } from './save-request.ts';

/** Pauses between attempts, in ms; short ones again after a while, so that who has waited long does not wait longest. */
const PAUSES = [0, 4, 8, 16, 24, 16, 8];

/**
 * Saves a snapshot: first with what is known, then, as often as others come in between, with what is read.
 *
 * @returns The snapshot's id; `null`: the mutator skipped the write.
 */
export async function saveSnapshot<S>(request: SaveRequest<S>, snapshotId: string | undefined): Promise<string | null> {
  const answer = snapshotId === undefined ? request.ask(undefined) : undefined;
  if (answer === null) return null;
  const id = snapshotId ?? answer?.snapshotId ?? reserveSnapshotId();
  assertId(id, 'snapshotId');
  const { snapshots, tenant } = request.tools;
  try {
    return await snapshots.run(tenant.keyOf(id), () => insist(request, id, answer));
  } catch (error) {
    throw error instanceof FinalRefusal ? error.error : error;
  }
}

async function insist<S>(
  request: SaveRequest<S>,
  id: string,
  answer: SessionSnapshotInput<S> | undefined,
): Promise<string | null> {
  const deadline = Date.now() + request.tools.tenant.settings.patienceMs;
  for (let attempt = 0; ; attempt++) {
    try {
      return await tryOnce(request, id, answer, attempt === 0 ? 'cached' : 'read');
    } catch (error) {
      if (!(error instanceof Stale)) throw error;
      if (Date.now() > deadline) throw tooContended(`Saving snapshot ${quote(id)}`);
      await pause(attempt);
    }
  }
}

async function tryOnce<S>(
  request: SaveRequest<S>,
  id: string,
  answer: SessionSnapshotInput<S> | undefined,
  trust: Trust,
): Promise<string | null> {
  const { tenant, reader } = request.tools;
  const create = new CreateSnapshot(request, id, answer);
  const known = tenant.sessionOfSnapshot(id);
  if (trust === 'cached' && !known) return create.run('cached');
  const snapshot = await reader.document(id);
  if (!snapshot) return create.run('read');
  return snapshot.by === request.nonce ? id : new RewriteSnapshot(request, snapshot).run(trust);
}

async function pause(attempt: number): Promise<void> {
  const longest = PAUSES[attempt % PAUSES.length]!;
  if (longest > 0) await new Promise((resolve) => setTimeout(resolve, Math.random() * longest));
}
