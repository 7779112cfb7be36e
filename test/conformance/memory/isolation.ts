import assert from 'node:assert/strict';
import type { MemoryScopeId } from '../../../src/store/memory/contract.ts';
import { each, equal, refuses, show } from '../support/assertions.ts';
import { HOSTILE_IDS, HOSTILE_PREFIXES, hostileOnes } from '../support/hostile-ids.ts';
import { ADA, note, put, source } from './support/drafts.ts';
import type { MemoryKit, MemorySubject } from './support/kit.ts';
import { Random } from '../../support/random.ts';

/** Scopes that look alike, contain each other's names, or look like paths and patterns. */
function hostileScopes(ids: readonly string[]): MemoryScopeId[] {
  const ofId = (id: string): MemoryScopeId[] => [
    { scope: 'user', appName: 'shop', userId: id },
    { scope: 'session', appName: 'shop', sessionId: id },
    { scope: 'app', appName: id },
    { scope: 'user', appName: id, userId: 'shop' },
  ];
  return [...new Map(ids.flatMap(ofId).map((scope) => [JSON.stringify(scope), scope])).values()];
}

/** A call sees one scope of one tenant. */
export const isolation: MemorySubject = {
  name: 'isolation',
  tests(kit) {
    atRandom(kit);
    const all = hostileOnes(kit, HOSTILE_IDS);
    kit.test(`hostile ids: ${all.length} ids name a memory, a source, a note and a job each`, async ({ a, b }) => {
      const forEach = (check: (id: string, i: number) => Promise<void>): Promise<void> =>
        each(
          [...all.entries()],
          ([, id]) => show(id).slice(0, 40),
          ([i, id]) => check(id, i),
        );
      await forEach(async (id, i) => {
        const scope: MemoryScopeId = { scope: 'session', appName: 'shop', sessionId: id };
        await a.commit(scope, [
          put(id, { n: i, sources: [source(id)] }),
          put('same', { n: i }),
          note(id, id, i),
          note(`x${i}`, id, i),
        ]);
        equal(await a.addJob({ id, scope, input: i, sourceId: id }, { maxJobs: 1000 }), 'added', 'the job');
      });
      await forEach(async (id, i) => {
        const scope: MemoryScopeId = { scope: 'session', appName: 'shop', sessionId: id };
        equal(
          (await b.get(scope, [id])).map((memory) => [memory.id, memory['n'], memory.scope]),
          [[id, i, scope]],
          'the memory',
        );
        equal((await b.get(scope, ['same']))[0]?.['n'], i, 'the memory with the same id in each scope');
        equal((await b.bySource(scope, id)).length, 1, 'the source');
        equal((await b.revisions(scope, id)).length, 1, 'the revisions');
        equal((await b.notes(scope, id)).notes, [{ kind: id, key: id, value: i }], 'the note');
        equal((await b.notes(scope, `x${i}`, { keys: [id] })).notes.length, 1, 'the note by its key');
        equal(
          (await b.listJobs({ scope })).items.map((job) => [job.id, job.input]),
          [[id, i]],
          'the job',
        );
        const other: MemoryScopeId = { scope: 'session', appName: 'shop', sessionId: `${id} and more`.slice(-1024) };
        equal((await b.query(other)).items, [], 'another scope');
      });
      const found = await b.listScopes({ limit: 1000 });
      const names = found.items.map((scope) => scope.scope === 'session' && scope.sessionId);
      equal(new Set(names), new Set(all), 'the scopes');
      await forEach(async (id, i) => {
        if (i % 2 === 0) await a.commit({ scope: 'session', appName: 'shop', sessionId: id }, [{ op: 'remove', id }]);
      });
      await forEach(async (id, i) => {
        const left = await b.get({ scope: 'session', appName: 'shop', sessionId: id }, [id]);
        equal(left.length, i % 2, 'what is left');
      });
    });

    kit.test('ids that would join to the same text are different ids', async ({ a, b }) => {
      const pairs = Array.from(':/|,-_#.\u0000', (sign): [MemoryScopeId, MemoryScopeId] => [
        { scope: 'user', appName: `a${sign}b`, userId: 'c' },
        { scope: 'user', appName: 'a', userId: `b${sign}c` },
      ]);
      for (const [scope] of pairs) await a.commit(scope, [put('x')]);
      for (const [scope, other] of pairs) {
        equal((await b.get(scope, ['x'])).length, 1, `the memory in ${show(scope)}`);
        equal(await b.get(other, ['x']), [], `the memories in ${show(other)}`);
      }
    });

    kit.test('scopes are listed page by page, each once', async ({ next }) => {
      const names = Array.from({ length: 7 }, (_, i) => `u${i}`);
      for (const userId of names) {
        await next().commit({ scope: 'user', appName: 'shop', userId }, [put('x')]);
        await next().addJob(
          { id: userId, scope: { scope: 'user', appName: 'shop', userId }, input: 1, sourceId: 's' },
          { maxJobs: 99 },
        );
      }
      for (const id of ['j1', 'j2']) {
        await next().addJob(
          { id, scope: { scope: 'user', appName: 'shop', userId: 'jobs only' }, input: 1, sourceId: 's' },
          { maxJobs: 99 },
        );
      }
      const found: unknown[] = [];
      for (let cursor: string | undefined, pages = 0; pages === 0 || cursor !== undefined; pages++) {
        assert.ok(pages < 20, 'the pages do not end');
        const page = await next().listScopes({ limit: 3, ...(cursor !== undefined && { cursor }) });
        found.push(...page.items.map((scope) => scope.scope === 'user' && scope.userId));
        cursor = page.nextCursor;
      }
      equal(found.length, 8, 'their number');
      equal(new Set(found), new Set(['jobs only', ...names]), 'the scopes');
    });

    if (!kit.hasTenants) return;
    const prefixes = hostileOnes(kit, HOSTILE_PREFIXES);
    kit.test(
      `hostile prefixes: ${prefixes.length} tenants do not see each other`,
      async ({ a, b }) => {
        const check = (body: (tenant: string, i: number) => Promise<void>): Promise<void> =>
          each(
            [...prefixes.entries()],
            ([, tenant]) => show(tenant).slice(0, 40),
            ([i, tenant]) => body(tenant, i),
          );
        await check(async (tenant, i) => {
          const context = { tenant };
          await a.commit(ADA, [put('seat', { n: i })], { context });
          await a.addJob({ id: 'job', scope: ADA, input: i, sourceId: 's' }, { maxJobs: 1, context });
        });
        await check(async (tenant, i) => {
          const context = { tenant };
          equal((await b.get(ADA, ['seat'], { context }))[0]?.['n'], i, 'the memory');
          equal((await b.query(ADA, { context })).items.length, 1, 'all memories');
          equal(
            (await b.listJobs({ context })).items.map(({ input }) => input),
            [i],
            'the jobs',
          );
          equal((await b.listScopes({ context })).items, [ADA], 'the scopes');
          equal([a.tenant({ context }), b.tenant({ context })].length, 2, 'the names');
        });
        equal(
          new Set(prefixes.map((tenant) => a.tenant({ context: { tenant } }))).size,
          prefixes.length,
          'the names of tenants',
        );
        await check(async (tenant, i) => {
          const context = { tenant };
          if (i % 2 === 0) await a.changeJob('job', { context, owner: undefined, to: 'dead' });
        });
        await check(async (tenant, i) => {
          const job = await b.claimJob({ context: { tenant }, owner: 'w', leaseMs: 60_000 });
          equal(job?.input, i % 2 === 0 ? undefined : i, 'the job that a worker takes');
        });
        await check(async (tenant, i) => {
          if (i % 2 === 0) equal((await a.erase(ADA, { context: { tenant } })).memories, 1, 'the erasure');
        });
        await check(async (tenant, i) =>
          equal((await b.query(ADA, { context: { tenant } })).items.length, i % 2, 'what is left'),
        );
        for (const tenant of ['', ' ', undefined, 1]) {
          await refuses('INVALID_ARGUMENT', () => a.get(ADA, ['seat'], { context: { tenant } }));
        }
      },
      { pathPrefix: (options) => options?.context?.['tenant'] as string },
    );
  },
};

/** Compares every read with the data that was written to its scope; the texts name other scopes. */
function atRandom(kit: MemoryKit): void {
  const operations = kit.runs(10_000, 100_000);
  kit.test(
    `${operations} operations in hostile scopes change only their own scope (seed ${kit.seed})`,
    async ({ a, b }) => {
      const random = new Random(kit.seed);
      const scopes = hostileScopes(
        hostileOnes(
          kit,
          HOSTILE_IDS.filter((_, i) => i % 5 === kit.seed % 5),
        ),
      );
      const expected = scopes.map(() => new Map<string, string>());
      const ids = ['*', '..', 'a', 'A', '/', '\u00E9', 'e\u0301'];
      for (let n = 0; n < operations; n++) {
        const i = random.below(scopes.length);
        const [scope, own, store, id] = [scopes[i]!, expected[i]!, random.pick([a, b]), random.pick(ids)];
        const kind = random.next();
        if (kind < 0.35) {
          const text = `${n} of ${i}, not of ${JSON.stringify(random.pick(scopes))}`;
          await store.commit(scope, [put(id, { text })]);
          own.set(id, text);
        } else if (kind < 0.4) {
          await store.commit(scope, [{ op: 'remove', id }]);
          own.delete(id);
        } else if (kind < 0.42) {
          await store.erase(scope);
          own.clear();
        } else if (kind < 0.7) {
          const found = await store.get(scope, ids);
          equal(
            found.map((memory) => [memory.id, memory.text]),
            ids.filter((one) => own.has(one)).map((one) => [one, own.get(one)]),
            `get in ${show(scope)}`,
          );
        } else if (kind < 0.85) {
          const { items } = await store.query(scope, { filter: { topics: ['said'] } });
          equal(new Map(items.map(({ memory }) => [memory.id, memory.text])), own, `query in ${show(scope)}`);
        } else {
          const found = await store.bySource(scope, 'chat-1');
          equal(found.length, own.size, `bySource in ${show(scope)}`);
        }
      }
    },
  );
}
