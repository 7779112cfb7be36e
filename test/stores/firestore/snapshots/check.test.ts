/** Every kind of damage and orphan, created in Firestore, and the findings of `check`. */
import type { DocumentReference } from '@google-cloud/firestore';
import type { StoreFinding } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { describe, expect, it } from 'vitest';
import { completedSnapshot, Workload } from '../../../../bench/workload.ts';
import { allDocuments } from '../support/at-rest.ts';
import { clearProject, newProject, openDatabase } from '../support/database.ts';

const TURNS = 7;
const ADA = { scope: 'user', appName: 'shop', userId: 'ada' } as const;

const project = newProject();
const db = openDatabase(project);

const open = (options = {}): FirestoreSessionStore =>
  new FirestoreSessionStore({ db, checkpointInterval: 4, ...options });
const at = (collection: string, kind: string, id: string): DocumentReference =>
  db.doc(`genkit-sessions${collection}/global/${kind}/${id}`);

/** A session with shards, one with a branch, a snapshot without a session, records. */
async function fill(): Promise<void> {
  await clearProject(project);
  const workload = new Workload({ sessionId: 'chat' });
  for (let i = 0; i < TURNS; i++) {
    const next = completedSnapshot(workload.next(), i > 0 ? `turn-${i - 1}` : undefined);
    await open().saveSnapshot(`turn-${i}`, () => next);
  }
  const createdAt = new Date().toISOString();
  const scopes = [{ id: ADA, change: () => ({ likes: 'tea' }) }];
  await open().saveSnapshot(
    'o1',
    () => ({ sessionId: 'other', createdAt, status: 'completed', state: { custom: 1 } }),
    { scopes },
  );
  for (const id of ['o2', 'o3']) {
    await open().saveSnapshot(id, () => ({
      sessionId: 'other',
      parentId: 'o1',
      createdAt,
      status: 'completed',
      state: { custom: 2 },
    }));
  }
  await open().saveSnapshot('alone', () => ({ createdAt, state: { custom: 3 } }));
  await open().writeRecord({ sessionId: 'chat', kind: 'note', key: 'k', value: 'v' });
}

const IDS = [...Array.from({ length: TURNS }, (_, i) => `turn-${i}`), 'o1', 'o2', 'o3', 'alone'];

/** The snapshots that can't be read by their ids. */
async function lostSnapshots(): Promise<string[]> {
  const read = await Promise.all(
    IDS.map((snapshotId) =>
      open()
        .getSnapshot({ snapshotId })
        .catch((error: { status: string }) => error.status),
    ),
  );
  return IDS.filter((_, i) => read[i] === undefined || read[i] === 'DATA_LOSS');
}

describe('check of a Firestore store', () => {
  it('finds nothing in an intact store, and reads each document about once', async () => {
    await fill();
    const store = open();
    expect(await store.check({ repair: true, graceMs: 0 })).toEqual({
      sessions: 2,
      snapshots: IDS.length,
      records: 1,
      scopes: 1,
      findings: [],
    });
    const documents = (await allDocuments(db)).length;
    expect(store.stats().reads).toBeLessThan(3 * documents);
    expect((await allDocuments(db)).length).toBe(documents);
  });

  it('any one document deleted: names its session and snapshot, and every snapshot that can not be read', async () => {
    await fill();
    for (const { ref } of await allDocuments(db)) {
      const kind = ref.parent.id;
      const backup = (await ref.get()).data()!;
      await ref.delete();
      const { findings } = await open().check({ repair: true });
      const named = new Set(findings.flatMap(({ snapshotId }) => snapshotId ?? []));
      expect([...named], ref.path).toEqual(expect.arrayContaining(await lostIfNotAlone(ref)));
      if (kind === 'pointers') {
        expect(findings, ref.path).toContainEqual(
          expect.objectContaining({ kind: 'damaged', sessionId: ref.id, place: ref.path }),
        );
      } else if (kind === 'shards') {
        expect(findings, ref.path).toContainEqual(expect.objectContaining({ kind: 'damaged', sessionId: 'chat' }));
      } else if (kind === 'snapshots' && ref.id !== 'alone') {
        expect(findings, ref.path).toContainEqual(
          expect.objectContaining({ kind: 'damaged', snapshotId: ref.id, place: ref.path }),
        );
      } else expect(findings, ref.path).toEqual([]);
      expect(
        findings.every((finding) => finding.kind === 'damaged' && !finding.isRepaired),
        ref.path,
      ).toBe(true);
      await ref.set(backup);
    }
    expect((await open().check()).findings).toEqual([]);
  });

  /** Nothing names a missing snapshot without a session. */
  async function lostIfNotAlone(ref: DocumentReference): Promise<string[]> {
    return (await lostSnapshots()).filter((id) => id !== 'alone' || ref.id !== 'alone');
  }

  const damaged = (found: Partial<StoreFinding>): Partial<StoreFinding> => ({ kind: 'damaged', ...found });
  it.each<[string, () => Promise<unknown>, Partial<StoreFinding>]>([
    [
      'a damaged snapshot',
      () => at('', 'snapshots', 'turn-3').update({ head: Buffer.from('x') }),
      damaged({ sessionId: 'chat', snapshotId: 'turn-3' }),
    ],
    [
      'a damaged change of a state',
      () => at('', 'snapshots', 'turn-2').update({ patch: Buffer.from('x') }),
      damaged({ snapshotId: 'turn-2' }),
    ],
    [
      'a damaged pointer',
      () => at('-pointers', 'pointers', 'chat').update({ info: Buffer.from('x') }),
      damaged({ sessionId: 'chat' }),
    ],
    [
      'a damaged latest state in a pointer',
      () => at('-pointers', 'pointers', 'other').update({ whole: Buffer.from('x') }),
      damaged({ sessionId: 'other' }),
    ],
    [
      'a snapshot of a newer version',
      () => at('', 'snapshots', 'o2').update({ v: 99 }),
      { kind: 'unreadable', sessionId: 'other', snapshotId: 'o2' },
    ],
    ['a damaged record of a user', () => damageFirst('-scopes', 'scopes', 'record'), damaged({})],
    ['a damaged name of a session record', () => damageFirst('-records', 'records', 'name'), damaged({})],
    ['a damaged session record', () => damageFirst('-records', 'records', 'value'), damaged({ sessionId: 'chat' })],
    ['a damaged shard', () => damageFirst('-shards', 'shards', 'data'), damaged({ sessionId: 'chat' })],
  ])('finds and names %s, and repairs nothing of it', async (_name, plant, found) => {
    await fill();
    await plant();
    const before = (await allDocuments(db)).length;
    const { findings } = await open().check({ repair: true, graceMs: 0 });
    expect(findings).toContainEqual(expect.objectContaining({ tenant: 'global', isRepaired: false, ...found }));
    expect((await allDocuments(db)).length).toBe(before);
  });

  async function damageFirst(collection: string, kind: string, field: string): Promise<void> {
    const { docs } = await db.collection(`genkit-sessions${collection}/global/${kind}`).limit(1).get();
    await docs[0]!.ref.update({ [field]: Buffer.from('x') });
  }

  it('finds orphans of every kind, and repairs only those that are older than the grace', async () => {
    await fill();
    const [shard] = (await db.collection('genkit-sessions-shards/global/shards').limit(1).get()).docs;
    await shard!.ref.parent.doc(`${shard!.id.slice(0, 30)}AAAAAAAAAAAAAAAAAAAAAA`).set(shard!.data());
    const old = (await at('', 'snapshots', 'o2').get()).data()!;
    await open().deleteSession({ sessionId: 'other' });
    const createdAt = new Date().toISOString();
    await open().saveSnapshot('o9', () => ({ sessionId: 'other', createdAt, status: 'completed' }));
    await at('', 'snapshots', 'o2').set(old);
    await open().writeRecord({ sessionId: 'never', kind: 'note', key: 'k', value: 1 });
    const young = await open().check({ repair: true });
    expect(young.findings.map(({ kind, sessionId }) => `${kind} ${sessionId}`).toSorted()).toEqual([
      'orphan chat',
      'orphan never',
      'orphan other',
    ]);
    expect(young.findings.some(({ isRepaired }) => isRepaired)).toBe(false);
    const repaired = await open().check({ repair: true, graceMs: 0 });
    expect(repaired.findings.map(({ isRepaired }) => isRepaired)).toEqual([true, true, true]);
    expect((await open().check()).findings).toEqual([]);
    expect(await lostSnapshots()).toEqual(['o1', 'o2', 'o3']);
  });

  it('finds what has expired, and leaves it to prune', async () => {
    await fill();
    const createdAt = new Date().toISOString();
    const expiring = open({ expireAfterMs: 1 });
    await expiring.saveSnapshot('e1', () => ({
      sessionId: 'short',
      createdAt,
      status: 'completed',
      state: { custom: 1 },
    }));
    const expired = async (): Promise<StoreFinding[]> => (await expiring.check({ repair: true, graceMs: 0 })).findings;
    await expect
      .poll(expired)
      .toEqual([expect.objectContaining({ kind: 'expired', sessionId: 'short', isRepaired: false })]);
    await at('-pointers', 'pointers', 'short').delete();
    expect(await expired()).toEqual([expect.objectContaining({ kind: 'expired', sessionId: 'short' })]);
    await expiring.prune({ idleMs: 3_600_000 });
    expect(await expired()).toEqual([]);
  });
});
