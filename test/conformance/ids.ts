import assert from 'node:assert/strict';
import { each, equal, show } from './support/assertions.ts';
import { HOSTILE_IDS } from './support/hostile-ids.ts';
import type { Stage, Subject } from './support/kit.ts';
import { snapshot } from './support/snapshots.ts';

type Case = readonly [index: number, id: string];

const CASES: readonly Case[] = [...HOSTILE_IDS.entries()];

function forEach(check: (id: string, index: number) => Promise<void>): Promise<void> {
  return each(
    CASES,
    ([, id]) => show(id).slice(0, 40),
    ([index, id]) => check(id, index),
  );
}

/** Ids are data: every one finds what was saved under it, and nothing else. */
export const ids: Subject = {
  name: 'ids',
  tests(kit) {
    const title = `hostile ids: ${HOSTILE_IDS.length} ids`;

    kit.test(`${title} name a snapshot each`, async ({ a, b }) => {
      assert.ok(HOSTILE_IDS.length >= 200, `${HOSTILE_IDS.length} ids`);
      await forEach(async (id, i) => {
        equal(await a.save(id, snapshot({ sessionId: 'all', custom: { i } })), id, 'the answer');
      });
      await forEach(async (id, i) => {
        const read = await b.mustGet(id);
        equal([read.snapshotId, read.state?.custom], [id, { i }], show(id));
      });
      if (kit.capabilities.list) equal(await listed(b), [...HOSTILE_IDS].toSorted(), 'the listed ids');
      await forEach(async (id) => equal(await b.byId(`${id} and more`.slice(-1024)), undefined, 'another id'));
    });

    kit.test(`${title} name a session and a parent each, and are watched`, async ({ a, b }) => {
      const told = new Map<string, string>();
      if (kit.capabilities.watch)
        await forEach(async (id) => void a.watch(id, (news) => told.set(id, news.snapshotId)));
      await forEach(async (id, i) => {
        await a.save(`child ${i}`, snapshot({ sessionId: id, parentId: id }));
        await b.save(id, snapshot({ sessionId: id, custom: { i } }));
        equal([await a.leafId(id), await b.leafId(id)], [`child ${i}`, `child ${i}`], 'the leaf above it');
        equal((await b.mustGet(`child ${i}`)).parentId, id, 'the parent');
        const own = await a.mustGet(id);
        equal([own.sessionId, own.state?.custom], [id, { i }], 'itself');
      });
      if (kit.capabilities.watch) {
        await kit.eventually(() => told.size === HOSTILE_IDS.length, 'the telling of every watcher');
        await forEach(async (id) => equal(told.get(id), id, 'the notification'));
      }
      if (!kit.capabilities.delete) return;
      await forEach(async (id, i) => {
        if (i % 2 === 0) equal((await b.deleteSession(id)).snapshots, 2, 'deleted');
      });
      await forEach(async (id, i) => {
        equal(await a.leafId(id), i % 2 === 0 ? undefined : `child ${i}`, 'what is left');
      });
    });
  },
};

async function listed(handle: Stage['a']): Promise<string[]> {
  const page = await handle.listSnapshots({ sessionId: 'all', limit: 1000 });
  return page.items.map((item) => item.snapshotId).toSorted();
}
