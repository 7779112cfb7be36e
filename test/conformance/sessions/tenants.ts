import assert from 'node:assert/strict';
import { equal, refuses } from '../support/assertions.ts';
import { HOSTILE_PREFIXES, hostileOnes } from '../support/hostile-ids.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';

/** No prefix can access the data of another prefix. */
export const tenants: Subject = {
  name: 'tenants',
  // The suite’s second run already has a prefix.
  isFor: (kit) => kit.hasTenants && !kit.underTenant,
  tests(kit) {
    fence(kit);
    badPrefixes(kit);
  },
};

function fence(kit: Kit): void {
  const many = kit.manyTenants;
  const prefixes = hostileOnes(kit, HOSTILE_PREFIXES);
  const title = `tenant fence: ${prefixes.length} hostile prefixes`;

  const apart = `${title} with the same ids read only their own data`;
  kit.test(
    apart,
    async ({ a, b }) => {
      assert.ok(HOSTILE_PREFIXES.length >= 50, `${HOSTILE_PREFIXES.length} prefixes`);
      const hostile = ['same', '../same', '../a/same', 'a/same'];
      for (const [i, tenant] of prefixes.entries()) {
        for (const id of hostile) {
          equal(await b.as(tenant).byId(id), undefined, `${tenant} before its first save`);
          await a.as(tenant).save(id, snapshot({ sessionId: 'same', custom: { i, id } }));
        }
        await a.as(tenant).save(`own ${i}`, snapshot({ sessionId: `own ${i}` }));
      }
      for (const [i, tenant] of prefixes.entries()) {
        const own = b.as(tenant);
        for (const id of hostile) equal((await own.mustGet(id)).state?.custom, { i, id }, `${tenant}: ${id}`);
        equal(await own.leafId('same'), hostile.at(-1), `the leaf of ${tenant}`);
        equal(await own.byId(`own ${i === 0 ? 1 : 0}`), undefined, `another’s snapshot, to ${tenant}`);
        equal(await own.bySession(`own ${i === 0 ? 1 : 0}`), undefined, `another’s session, to ${tenant}`);
        if (!kit.capabilities.list) continue;
        const sessions = (await own.listSessions()).items.map((item) => item.sessionId);
        equal(sessions, [`own ${i}`, 'same'], `the sessions of ${tenant}`);
      }
    },
    many,
  );

  if (kit.capabilities.delete && kit.capabilities.prune) {
    const removing = `${title} remove only their own data`;
    kit.test(
      removing,
      async ({ a, b }) => {
        for (const tenant of prefixes) {
          for (const id of ['one', 'two']) await a.as(tenant).save(id, snapshot({ sessionId: id }));
        }
        for (const [i, tenant] of prefixes.entries()) {
          if (i % 3 === 1) equal((await b.as(tenant).deleteSession('one')).snapshots, 1, 'deleted');
          if (i % 3 === 2) equal((await b.as(tenant).prune({ idleMs: 0 })).sessions, 2, 'pruned');
        }
        for (const [i, tenant] of prefixes.entries()) {
          const left = [await a.as(tenant).leafId('one'), await a.as(tenant).leafId('two')];
          equal(
            left,
            [
              ['one', 'two'],
              [undefined, 'two'],
              [undefined, undefined],
            ][i % 3],
            `what ${tenant} has left`,
          );
        }
      },
      many,
    );
  }

  if (kit.capabilities.watch) {
    const watching = `${title} are notified only of their own data`;
    kit.test(
      watching,
      async ({ a }) => {
        const received = prefixes.map((): unknown[] => []);
        const ends = prefixes.map((tenant, i) =>
          a.as(tenant).watch('same', (news) => received[i]!.push(news.state?.custom)),
        );
        for (const [i, tenant] of prefixes.entries()) await a.as(tenant).save('same', snapshot({ custom: { i } }));
        await kit.eventually(() => received.every((news) => news.length > 0), 'the notification of every watcher');
        for (const end of ends) end();
        for (const [i, news] of received.entries()) {
          for (const custom of news) equal(custom, { i }, `a notification of ${prefixes[i]}`);
        }
      },
      many,
    );
  }
}

function badPrefixes(kit: Kit): void {
  const name = 'tenant fence: an invalid prefix is refused, and no data is changed';
  kit.test(
    name,
    async ({ a }) => {
      await a.as('good').save('one', snapshot({ sessionId: 'chat' }));
      for (const bad of [undefined, null, '', ' ', 7, {}, ['good'], 'x'.repeat(1025), Promise.resolve('good')]) {
        const caller = a.as(bad);
        await refuses('INVALID_ARGUMENT', () => caller.byId('one'));
        await refuses('INVALID_ARGUMENT', () => caller.bySession('chat'));
        await refuses('INVALID_ARGUMENT', () => caller.save('one', snapshot({ sessionId: 'chat' })));
        await refuses('INVALID_ARGUMENT', () => caller.save(undefined, () => assert.fail('the mutator ran')));
        if (kit.capabilities.watch) await refuses('INVALID_ARGUMENT', () => caller.watch('one', () => {}));
        if (kit.capabilities.list) await refuses('INVALID_ARGUMENT', () => caller.listSessions());
        if (kit.capabilities.delete) await refuses('INVALID_ARGUMENT', () => caller.deleteSession('chat'));
        if (kit.capabilities.prune) await refuses('INVALID_ARGUMENT', () => caller.prune({ idleMs: 0 }));
      }
      equal(await a.as('good').leafId('chat'), 'one', 'the leaf');
    },
    kit.manyTenants,
  );
}
