import assert from 'node:assert/strict';
import type { MemoryJob, MemoryScopeId, MemoryStore } from '../../../src/store/memory/contract.ts';
import { equal, refuses, statusOf } from '../support/assertions.ts';
import { ADA, BOB, isoOf, CAROL, note, put, START } from './support/drafts.ts';
import type { MemorySubject } from './support/kit.ts';

const LEASE_MS = 1000;

function add(store: MemoryStore, id: string, scope: MemoryScopeId, now: number, maxJobs = 100) {
  return store.addJob({ id, scope, input: { of: id }, sourceId: 'chat-1' }, { maxJobs, now });
}

async function claim(
  store: MemoryStore,
  owner: string,
  now: number,
  scope?: MemoryScopeId,
): Promise<MemoryJob | undefined> {
  return store.claimJob({ owner, leaseMs: LEASE_MS, now, ...(scope && { scope }) });
}

/** Each job is claimed by one worker, each scope has one running job, and a commit removes its job. */
export const jobs: MemorySubject = {
  name: 'jobs',
  tests(kit) {
    kit.test('a job is added once, claimed by one worker, and removed by its commit', async ({ next }) => {
      equal(await add(next(), 'one', ADA, START), 'added', 'the first');
      equal(await add(next(), 'one', BOB, START + 1), 'known', 'the second');
      const job = await claim(next(), 'w', START + 5);
      const times = { createdAt: isoOf(START), dueAt: isoOf(START), leaseUntil: isoOf(START + 5 + LEASE_MS) };
      const rest = { id: 'one', scope: ADA, input: { of: 'one' }, sourceId: 'chat-1' };
      equal(job, { ...rest, ...times, state: 'running', attempts: 1, owner: 'w' }, 'the job');
      equal((await next().listJobs()).items, [job], 'the list');
      equal(await claim(next(), 'v', START + 6), undefined, 'another claim');
      for (const hold of [
        { id: 'one', owner: 'v' },
        { id: 'two', owner: 'w' },
      ]) {
        const both = [put('x'), note('k', 'x', 1)];
        await refuses('ABORTED', () => next().commit(ADA, both, { job: hold }), hold.id);
      }
      await refuses('ABORTED', () => next().commit(BOB, [put('x')], { job: { id: 'one', owner: 'w' } }), 'one');
      await refuses('ABORTED', () =>
        next().commit(ADA, [put('x')], { expectedRevision: 9, job: { id: 'one', owner: 'w' } }),
      );
      equal(await next().get(ADA, ['x']), [], 'the refused memory');
      equal((await next().notes(ADA, 'k')).notes, [], 'the note that was refused');
      equal(await next().commit(ADA, [put('x')], { job: { id: 'one', owner: 'w' } }), { revision: 1 }, 'the commit');
      equal((await next().listJobs()).items, [], 'the list after it');
      await refuses('ABORTED', () => next().commit(ADA, [put('y')], { job: { id: 'one', owner: 'w' } }), 'one');
      equal(await add(next(), 'one', ADA, START + 9), 'added', 'the same id again');
      await claim(next(), 'w', START + 9);
      equal(await next().commit(ADA, [], { job: { id: 'one', owner: 'w' } }), { revision: 1 }, 'an empty commit');
      equal((await next().listJobs()).items, [], 'the list at last');
    });

    kit.test('a commit that keeps its job also needs the job, and does not change it', async ({ next }) => {
      await add(next(), 'one', ADA, START);
      const job = await claim(next(), 'w', START + 5);
      const commit = (id: string, owner = 'w') =>
        next().commit(ADA, [put(id)], { job: { id: 'one', owner, keep: true } });
      await refuses('ABORTED', () => commit('v', 'v'), 'one');
      equal(await commit('x'), { revision: 1 }, 'the first commit');
      equal(
        await next().commit(ADA, [], { job: { id: 'one', owner: 'w', keep: true } }),
        { revision: 1 },
        'of nothing',
      );
      equal(await commit('y'), { revision: 2 }, 'the second commit');
      equal((await next().listJobs()).items, [job], 'the job');
      await next().changeJob('one', { owner: 'w', to: 'remove', now: START + 6 });
      await refuses('ABORTED', () => commit('z'), 'one');
      equal(
        (await next().get(ADA, ['v', 'x', 'y', 'z'])).map(({ id }) => id),
        ['x', 'y'],
        'what was committed',
      );
    });

    kit.test('the jobs of a scope run one at a time, in the order in which they were added', async ({ next }) => {
      for (const [i, id] of ['a9', 'b9', 'a1', 'b1'].entries())
        await add(next(), id, id.startsWith('a') ? ADA : BOB, START + i);
      const now = START + 10;
      equal((await claim(next(), 'w1', now))?.id, 'a9', 'the first');
      equal((await claim(next(), 'w2', now))?.id, 'b9', 'the second');
      equal(await claim(next(), 'w3', now), undefined, 'no third');
      await next().changeJob('a9', { owner: 'w1', to: 'waiting', dueAt: isoOf(now + 100), now });
      equal(await claim(next(), 'w3', now), undefined, 'no job while the first waits');
      equal((await claim(next(), 'w3', now + 100))?.id, 'a9', 'the first again');
      await next().changeJob('a9', { owner: 'w3', to: 'dead', error: 'no', now });
      equal(await claim(next(), 'w3', now, BOB), undefined, 'no job of the other scope');
      equal(await claim(next(), 'w3', now, CAROL), undefined, 'no job of a scope without jobs');
      equal((await next().listJobs({ scope: CAROL })).items, [], 'its list');
      equal((await claim(next(), 'w3', now, ADA))?.id, 'a1', 'the next one');
      equal(
        (await next().listJobs({ state: 'dead' })).items.map(({ id, error, attempts }) => [id, error, attempts]),
        [['a9', 'no', 2]],
        'the dead',
      );
    });

    kit.test('a job waits for its time; the job that has been due longest comes first', async ({ next }) => {
      const scope = (userId: string): MemoryScopeId => ({ scope: 'user', appName: 'shop', userId });
      await add(next(), 'late', scope('1'), START + 500);
      await add(next(), 'later', scope('2'), START + 900);
      await add(next(), 'early', scope('3'), START + 2);
      equal(await claim(next(), 'w', START + 1), undefined, 'too early');
      equal((await claim(next(), 'w', START + 950))?.id, 'early', 'first');
      equal((await claim(next(), 'w', START + 950))?.id, 'late', 'second');
      equal((await claim(next(), 'w', START + 950))?.id, 'later', 'third');
    });

    kit.test('a lease is renewed, expires, and then another worker can take the job', async ({ next }) => {
      await add(next(), 'one', ADA, START);
      await claim(next(), 'w', START);
      await next().changeJob('one', { owner: 'w', to: 'renew', leaseMs: 5000, now: START + 900 });
      equal(await claim(next(), 'v', START + 5000), undefined, 'while the lease lasts');
      const taken = await claim(next(), 'v', START + 5900);
      equal([taken?.id, taken?.attempts, taken?.owner], ['one', 2, 'v'], 'when it has expired');
      for (const to of ['renew', 'waiting', 'dead', 'remove'] as const) {
        await refuses(
          'ABORTED',
          () => next().changeJob('one', { owner: 'w', to, leaseMs: 1, now: START + 6000 }),
          'one',
        );
      }
      await refuses('ABORTED', () => next().commit(ADA, [put('x')], { job: { id: 'one', owner: 'w' } }), 'one');
      await refuses(
        'ABORTED',
        () => next().changeJob('one', { owner: undefined, to: 'remove', now: START + 6000 }),
        'one',
      );
      await next().changeJob('one', { owner: 'v', to: 'waiting', attempts: 0, now: START + 6000 });
      const [job] = (await next().listJobs()).items;
      equal(
        job,
        {
          id: 'one',
          scope: ADA,
          state: 'waiting',
          input: { of: 'one' },
          sourceId: 'chat-1',
          attempts: 0,
          createdAt: isoOf(START),
          dueAt: isoOf(START + 6000),
        },
        'given back',
      );
      await next().changeJob('one', { owner: undefined, to: 'remove' });
      equal((await next().listJobs()).items, [], 'removed');
      await refuses('NOT_FOUND', () => next().changeJob('one', { owner: undefined, to: 'waiting' }), 'one');
    });

    kit.test('the queue is bounded, and dead jobs do not count', async ({ next }) => {
      equal(await add(next(), 'one', ADA, START, 2), 'added', 'one');
      equal(await add(next(), 'two', BOB, START, 2), 'added', 'two');
      equal(await add(next(), 'three', BOB, START, 2), 'full', 'three');
      equal(await add(next(), 'one', BOB, START, 2), 'known', 'one again');
      await next().changeJob('one', { owner: undefined, to: 'dead' });
      equal(await add(next(), 'three', BOB, START, 2), 'added', 'three again');
      equal(await add(next(), 'one', ADA, START, 9), 'known', 'a dead one');
    });

    kit.test('jobs are listed oldest first, by state and scope, page by page', async ({ next }) => {
      for (let i = 0; i < 7; i++) await add(next(), `j${i}`, i % 2 === 0 ? ADA : BOB, START + i);
      await next().changeJob('j2', { owner: undefined, to: 'dead' });
      const all: string[] = [];
      for (let cursor: string | undefined; all.length === 0 || cursor !== undefined;) {
        const page = await next().listJobs({ limit: 3, ...(cursor !== undefined && { cursor }) });
        all.push(...page.items.map(({ id }) => id));
        assert.ok(
          all.length < 20,
          'the pages of listJobs do not end: a page begins after the item that the cursor names',
        );
        cursor = page.nextCursor;
      }
      equal(all, ['j0', 'j1', 'j2', 'j3', 'j4', 'j5', 'j6'], 'all');
      const found = async (options: Parameters<MemoryStore['listJobs']>[0]): Promise<string[]> =>
        (await next().listJobs(options)).items.map(({ id }) => id);
      equal(await found({ scope: ADA }), ['j0', 'j2', 'j4', 'j6'], 'of a scope');
      equal(await found({ scope: ADA, state: 'waiting' }), ['j0', 'j4', 'j6'], 'of a scope and a state');
      equal(await found({ state: 'running' }), [], 'of a state');
      const first = await next().listJobs({ limit: 3 });
      for (const id of ['j0', 'j2']) await next().changeJob(id, { owner: undefined, to: 'remove' });
      equal(
        await found({ cursor: first.nextCursor! }),
        ['j3', 'j4', 'j5', 'j6'],
        'after a page of which two were removed',
      );
    });

    const count = kit.runs(20, 200);
    kit.test(
      `${count} jobs of 5 scopes and 8 workers: each job is committed once, one at a time in each scope`,
      async ({ a, b }) => {
        const scopes = Array.from({ length: 5 }, (_, i): MemoryScopeId => ({
          scope: 'user',
          appName: 'shop',
          userId: `u${i}`,
        }));
        await Promise.all(
          Array.from({ length: count }, (_, i) => add(i % 2 === 0 ? a : b, `j${i}`, scopes[i % 5]!, START + i, count)),
        );
        const running = new Set<string>();
        let done = 0;
        const work = async (owner: string, store: MemoryStore): Promise<void> => {
          while (done < count) {
            const job = await store.claimJob({ owner, leaseMs: 60_000 });
            if (!job) {
              await new Promise((resolve) => setImmediate(resolve));
              continue;
            }
            const name = JSON.stringify(job.scope);
            assert.ok(!running.has(name), `two jobs of ${name} at a time`);
            running.add(name);
            const {
              notes: [before],
            } = await store.notes(job.scope, 'count', { keys: ['it'] });
            running.delete(name);
            await store.commit(job.scope, [note('count', 'it', ((before?.value as number) ?? 0) + 1)], {
              job: { id: job.id, owner },
            });
            done++;
          }
        };
        await Promise.all(Array.from({ length: 8 }, (_, i) => work(`w${i}`, i % 2 === 0 ? a : b)));
        const sums = await Promise.all(
          scopes.map(async (scope) => ((await a.notes(scope, 'count')).notes[0]?.value as number | undefined) ?? 0),
        );
        equal(
          sums.reduce((x, y) => x + y, 0),
          count,
          'the effects',
        );
        equal((await b.listJobs()).items, [], 'what is left');
      },
    );

    kit.test('only one of two commits for the same job succeeds', async ({ a, b }) => {
      await add(a, 'one', ADA, START);
      await claim(b, 'w', START);
      const job = { id: 'one', owner: 'w' };
      const results = await Promise.allSettled([a, b].map((store, i) => store.commit(ADA, [put(`m${i}`)], { job })));
      const refused = results.filter((result) => result.status === 'rejected');
      equal(
        refused.map(({ reason }) => statusOf(reason)),
        ['ABORTED'],
        'the refusal',
      );
      equal((await a.query(ADA)).items.length, 1, 'the effect');
    });
  },
};
