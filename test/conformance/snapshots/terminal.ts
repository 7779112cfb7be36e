import assert from 'node:assert/strict';
import type { SessionSnapshotInput, SnapshotMutator } from '../../../src/store/contract.ts';
import { equal, refuses, statusOf } from '../support/assertions.ts';
import type { Handle } from '../support/handle.ts';
import type { Subject } from '../support/kit.ts';
import { snapshot, STATUSES, TERMINAL } from '../support/snapshots.ts';

/** Completed, failed and aborted are final. */
export const terminal: Subject = {
  name: 'terminal statuses',
  tests(kit) {
    kit.test(
      'a terminal snapshot never changes its status, and a refused attempt changes nothing',
      async ({ a, b }) => {
        for (const from of TERMINAL) {
          await a.save(from, snapshot({ sessionId: 'chat', status: from, custom: { by: 'the first' } }));
          const before = await a.mustGet(from);
          for (const to of [...STATUSES.filter((status) => status !== from), undefined]) {
            const { status: _, ...rest } = snapshot({ sessionId: 'chat', custom: { by: 'the second' } });
            await refuses('FAILED_PRECONDITION', () => b.save(from, { ...rest, ...(to && { status: to }) }), from);
            equal(await a.byId(from), before, `${from} after an attempt to make it ${to}`);
          }
        }
      },
    );

    kit.test('a terminal snapshot may be rewritten with its own status', async ({ a }) => {
      for (const status of TERMINAL) {
        await a.save(status, snapshot({ status, custom: { n: 1 } }));
        await a.save(status, snapshot({ status, custom: { n: 2 } }));
        equal((await a.mustGet(status)).state?.custom, { n: 2 }, status);
      }
    });

    kit.test('a pending or expired snapshot may get any status', async ({ a }) => {
      for (const from of ['pending', 'expired'] as const) {
        for (const to of STATUSES) {
          const id = `${from} to ${to}`;
          await a.save(id, snapshot({ status: from }));
          await a.save(id, snapshot({ status: to }));
          equal((await a.mustGet(id)).status, to, id);
        }
      }
    });

    const rounds = kit.runs(200, 1000);
    kit.test(
      `terminal state: in ${rounds} races of abort, complete, fail and heartbeat one status wins and stays`,
      async ({ a, b }) => {
        for (let round = 0; round < rounds; round++) await race(`round ${round}`, a, b);
      },
    );
  },
};

async function race(id: string, a: Handle, b: Handle): Promise<void> {
  await a.save(id, snapshot({ status: 'pending', custom: { by: 'the run' } }));
  const settle = (status: (typeof TERMINAL)[number]): SessionSnapshotInput =>
    snapshot({ status, custom: { by: status } });
  const heartbeat: SnapshotMutator = (current) =>
    current?.status === 'pending' ? { ...current, heartbeatAt: '2026-01-01T00:00:01.000Z' } : null;
  const beats = [b.save(id, heartbeat), a.save(id, heartbeat)];
  const attempts = await Promise.allSettled(
    TERMINAL.map((status, i) => (i % 2 === 0 ? a : b).save(id, settle(status))),
  );
  await Promise.all(beats);
  const winners = TERMINAL.filter((_, i) => attempts[i]!.status === 'fulfilled');
  equal(winners.length, 1, 'winners of the race');
  for (const attempt of attempts) {
    if (attempt.status === 'rejected') equal(statusOf(attempt.reason), 'FAILED_PRECONDITION', 'the losers’ error');
  }
  for (const handle of [a, b]) {
    const settled = await handle.mustGet(id);
    equal([settled.status, settled.state?.custom], [winners[0], { by: winners[0] }], 'the winner’s snapshot');
  }
  assert.ok(!(await a.save(id, heartbeat)), 'a heartbeat after the end was not skipped');
}
