import { describe, expect, it } from 'vitest';
import { canBecome, isTerminal, SNAPSHOT_STATUSES, type StoredStatus } from '../../../src/snapshot/status.ts';

/**
 * What may happen to a snapshot, from each status: commit (`completed`), fail, abort, heartbeat and take over (`pending`), expire, and losing
 * the status. Written out in full, so that a change of the rules is a change of this table.
 */
const TABLE: Record<string, Record<string, boolean>> = {
  //            commit            fail           abort          heartbeat      expire         no status
  pending: { completed: true, failed: true, aborted: true, pending: true, expired: true, none: false },
  expired: { completed: true, failed: true, aborted: true, pending: true, expired: true, none: false },
  completed: { completed: true, failed: false, aborted: false, pending: false, expired: false, none: false },
  failed: { completed: false, failed: true, aborted: false, pending: false, expired: false, none: false },
  aborted: { completed: false, failed: false, aborted: true, pending: false, expired: false, none: false },
  none: { completed: true, failed: true, aborted: true, pending: true, expired: true, none: true },
};

const ALL: readonly StoredStatus[] = [...SNAPSHOT_STATUSES, undefined];
const nameOf = (status: StoredStatus): string => status ?? 'none';

describe('the status table', () => {
  it('is total, and says what the rules say', () => {
    const actual = ALL.map((from) => [
      nameOf(from),
      Object.fromEntries(ALL.map((to) => [nameOf(to), canBecome(from, to)])),
    ]);
    expect(Object.fromEntries(actual)).toEqual(TABLE);
  });

  it('calls terminal what nothing leads out of', () => {
    const closed = ALL.filter((from) => ALL.every((to) => to === from || !canBecome(from, to)));
    expect(ALL.filter(isTerminal)).toEqual(closed);
    expect(closed).toEqual(['completed', 'failed', 'aborted']);
  });
});
