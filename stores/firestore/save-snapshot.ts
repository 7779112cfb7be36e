import { quote } from '../../src/errors.ts';
import { assertId, reserveSnapshotId } from '../../src/snapshot/ids.ts';
import type { SessionSnapshotInput } from '../../src/snapshot/snapshot.ts';
import { CreateSnapshot } from './create-snapshot.ts';
import { AlreadySaved, FinalRefusal, Stale, tooContended } from './failures.ts';
import { RewriteSnapshot } from './rewrite-snapshot.ts';
import type { SaveRequest, Trust } from './save-request.ts';

/** The longest pauses before each attempt after the first, in ms: whoever has waited longer waits less, so that nobody waits for ever. */
const PAUSES = [24, 20, 16, 12, 8, 4];
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
  const { tenant } = request.tools;
  const deadline = Date.now() + tenant.settings.patienceMs;
  for (let attempt = 0; ; attempt++) {
    try {
      return await tryOnce(request, id, answer, attempt === 0 ? 'cached' : 'read');
    } catch (error) {
      if (error instanceof AlreadySaved) return id;
      if (!(error instanceof Stale)) throw error;
      if (Date.now() > deadline) throw tooContended(`Saving snapshot ${quote(id)}`);
      // The first time it may have been the cache alone that was wrong.
      if (attempt > 0) await pause(PAUSES[attempt - 1] ?? 0);
    }
  }
}

async function tryOnce<S>(
  request: SaveRequest<S>,
  id: string,
  answer: SessionSnapshotInput<S> | undefined,
  trust: Trust,
): Promise<string | null> {
  const create = new CreateSnapshot(request, id, answer);
  if (trust === 'cached' && !request.tools.tenant.sessionOfSnapshot(id)) return create.run('cached');
  const work = async (): Promise<string | null> => {
    if (trust === 'read') await request.readAhead(id);
    const snapshot = await request.current(id);
    if (!snapshot) return create.run('read');
    return snapshot.by.includes(request.nonce) ? id : new RewriteSnapshot(request, snapshot).run(trust);
  };
  const { hint } = request;
  return trust === 'read' && hint ? request.inSession(hint.sessionId, work) : work();
}

async function pause(longest: number): Promise<void> {
  if (longest > 0) await new Promise((resolve) => setTimeout(resolve, Math.random() * longest));
}
