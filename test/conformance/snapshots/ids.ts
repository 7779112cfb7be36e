import assert from 'node:assert/strict';
import { each, equal, show } from '../support/assertions.ts';
import { HOSTILE_IDS, hostileOnes } from '../support/hostile-ids.ts';
import type { Stage, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';

type ForEach = (check: (id: string, index: number) => Promise<void>) => Promise<void>;

function forEachOf(all: readonly string[]): ForEach {
  return (check) =>
    each(
      [...all.entries()],
      ([, id]) => show(id).slice(0, 40),
      ([index, id]) => check(id, index),
    );
}

/** Ids are data: each id finds only the data that was saved under it. */
export const ids: Subject = {
  name: 'ids',
  tests(kit) {
    const all = hostileOnes(kit, HOSTILE_IDS);
    const forEach = forEachOf(all);
    const title = `hostile ids: ${all.length} ids`;
    kit.test(`${title} name a snapshot, a session and a parent each`, async ({ a, b }) => {
      assert.ok(HOSTILE_IDS.length >= 200, `${HOSTILE_IDS.length} ids`);
      await forEach(async (id, i) => {
        await a.save(`child ${i}`, snapshot({ sessionId: id, parentId: id }));
        equal(await b.save(id, snapshot({ sessionId: id, custom: { i } })), id, 'the answer');
      });
      await forEach(async (id, i) => {
        const leaf = await b.bySession(id);
        equal([leaf?.snapshotId, leaf?.sessionId, leaf?.parentId], [`child ${i}`, id, id], 'the leaf');
        const own = await a.mustGet(id);
        equal([own.snapshotId, own.sessionId, own.state?.custom], [id, id, { i }], 'itself');
        equal(await b.byId(`${id} and more`.slice(-1024)), undefined, 'another id');
      });
      if (kit.capabilities.list) await areListed(b, all);
      if (!kit.capabilities.delete) return;
      const isDeleted = (i: number): boolean => i % 4 === 0;
      await forEach(async (id, i) => {
        if (isDeleted(i)) equal((await b.deleteSession(id)).snapshots, 2, 'deleted');
      });
      await forEach(async (id, i) => {
        if (i % 4 < 2) equal(await a.leafId(id), isDeleted(i) ? undefined : `child ${i}`, 'what is left');
      });
    });

    if (!kit.capabilities.watch) return;
    kit.test(`${title} are watched each`, async ({ a }) => {
      const received = new Map<string, string>();
      await forEach(async (id) => void a.watch(id, (news) => received.set(id, news.snapshotId)));
      await forEach(async (id) => void (await a.save(id, snapshot())));
      await kit.eventually(() => received.size === all.length, 'the notification of every watcher');
      await forEach(async (id) => equal(received.get(id), id, 'the notification'));
    });
  },
};

async function areListed(handle: Stage['a'], all: readonly string[]): Promise<void> {
  const { items } = await handle.listSessions({ limit: 1000 });
  equal(items.map((item) => item.sessionId).toSorted(), all.toSorted(), 'the listed sessions');
  await forEachOf(all)(async (id, i) => {
    if (i % 4 !== 0) return;
    const page = await handle.listSnapshots({ sessionId: id });
    equal(
      page.items.map((item) => [item.snapshotId, item.parentId]),
      [
        [`child ${i}`, id],
        [id, undefined],
      ],
      'the listed snapshots',
    );
  });
}
