import * as fc from 'fast-check';
import type {
  PrunePolicy,
  SessionSnapshotInput,
  SnapshotMutator,
  SnapshotStatus,
  StoreCapabilities,
} from '../../../src/store/contract.ts';
import { policies } from '../sessions/retention.ts';
import { message, snapshot, STATUSES } from './snapshots.ts';

/** The handle and the tenant of an operation. */
interface Actor {
  by: 0 | 1;
  tenant: number;
}

/** A change of a snapshot. Numbers such as `target` name a known snapshot, modulo the number of snapshots. */
export interface Edit {
  status?: SnapshotStatus;
  n: number;
  /** Whether to also send another parent and another `createdAt`. */
  resend: boolean;
  session: 'same' | 'none' | 'other';
  messages: 'same' | 'more' | 'fewer' | 'none';
}

export type Operation = Actor &
  (
    | {
        op: 'save';
        session?: number;
        parent: number | 'leaf' | 'none' | 'missing' | 'future';
        plan: Plan;
        id: 'given' | 'in answer' | 'new';
      }
    | { op: 'rewrite'; target: number; edit: Edit; expected?: Expected }
    | { op: 'race'; target: number | 'new'; edits: Edit[] }
    | { op: 'skip'; target: number; by: 0 | 1; throws: boolean }
    | { op: 'delete'; session: number }
    | { op: 'prune'; policy: PrunePolicy; dryRun: boolean }
    | { op: 'list'; session: number; limit: number }
    | { op: 'watch'; target: number | 'future' }
    | { op: 'unwatch'; watcher: number }
  );

type Expected = 'leaf' | 'none' | 'stale';

interface Plan {
  status: SnapshotStatus;
  n: number;
  ageHours: number;
  expected?: Expected;
}

const status = fc.constantFrom<SnapshotStatus>('completed', 'completed', 'pending', 'pending', ...STATUSES);
const target = fc.nat(30);
const expected = fc.constantFrom<Expected>('leaf', 'leaf', 'none', 'stale');

const edit: fc.Arbitrary<Edit> = fc.record(
  {
    status,
    n: fc.nat(99),
    resend: fc.boolean(),
    session: fc.constantFrom<Edit['session'][]>('same', 'same', 'same', 'same', 'none', 'other'),
    messages: fc.constantFrom<Edit['messages'][]>('same', 'more', 'more', 'fewer', 'none'),
  },
  { requiredKeys: ['n', 'resend', 'session', 'messages'] },
);

/** Chooses one of the tenants, usually the first, so that its sessions become long. */
export function tenantOf(tenants: number): fc.Arbitrary<number> {
  return fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(tenants - 1) });
}

/** Random operations that the store supports, for this number of tenants. */
export function tapes(able: Readonly<StoreCapabilities>, tenants: number): fc.Arbitrary<Operation[]> {
  const actor = { by: fc.constantFrom<0 | 1>(0, 1), tenant: tenantOf(tenants) };
  const optional = { expected: able.compareLeaf ? expected : fc.constant(undefined) };
  const plan = fc.record(
    { status, n: fc.nat(99), ageHours: fc.nat(20), ...optional },
    { requiredKeys: ['status', 'n', 'ageHours'] },
  );
  const parent = fc.oneof(
    { weight: 6, arbitrary: fc.constant('leaf' as const) },
    { weight: 3, arbitrary: target },
    { weight: 2, arbitrary: fc.constantFrom('none' as const, 'missing' as const, 'future' as const) },
  );
  const id = fc.constantFrom<('given' | 'in answer' | 'new')[]>('given', 'given', 'given', 'in answer', 'new');
  const session = fc.option(fc.constantFrom(0, 0, 0, 1, 2), { nil: undefined, freq: 12 });
  const save = fc.record({ op: fc.constant('save' as const), ...actor, session, parent, plan, id });
  const rewrite = fc.record(
    { op: fc.constant('rewrite' as const), ...actor, target, edit, ...optional },
    { requiredKeys: ['op', 'by', 'tenant', 'target', 'edit'] },
  );
  const place = fc.oneof(target, fc.constant('new' as const));
  const race = fc.record({
    op: fc.constant('race' as const),
    ...actor,
    target: place,
    edits: fc.array(edit, { minLength: 2, maxLength: 3 }),
  });
  const skip = fc.record({ op: fc.constant('skip' as const), ...actor, target, throws: fc.boolean() });
  const operations: fc.WeightedArbitrary<Operation>[] = [
    { weight: 12, arbitrary: save },
    { weight: 6, arbitrary: rewrite },
    { weight: 3, arbitrary: race },
    { weight: 1, arbitrary: skip },
  ];
  const sessionIndex = fc.nat(2);
  if (able.delete) {
    const remove = fc.record({ op: fc.constant('delete' as const), ...actor, session: sessionIndex });
    operations.push({ weight: 1, arbitrary: remove });
  }
  if (able.prune) {
    const prune = fc.record({ op: fc.constant('prune' as const), ...actor, policy: policies, dryRun: fc.boolean() });
    operations.push({ weight: 2, arbitrary: prune });
  }
  if (able.list) {
    const limit = fc.integer({ min: 1, max: 5 });
    const list = fc.record({ op: fc.constant('list' as const), ...actor, session: sessionIndex, limit });
    operations.push({ weight: 2, arbitrary: list });
  }
  if (able.watch) {
    const watched = fc.oneof(target, fc.constant('future' as const));
    const watch = fc.record({ op: fc.constant('watch' as const), ...actor, target: watched });
    const unwatch = fc.record({ op: fc.constant('unwatch' as const), ...actor, watcher: fc.nat(9) });
    operations.push({ weight: 2, arbitrary: watch }, { weight: 1, arbitrary: unwatch });
  }
  return fc.array(fc.oneof(...operations), { minLength: 1, maxLength: 40, size: 'max' });
}

/** Returns the mutator of an edit. A new snapshot belongs to `sessionId`. */
export function editing(change: Edit, sessionId: string): SnapshotMutator {
  return (current) => {
    const before: SessionSnapshotInput = current ?? snapshot({ sessionId, status: 'pending', messages: 0 });
    const messages = before.state?.messages ?? [];
    const kept = { same: messages, more: [...messages, message(change.n)], fewer: messages.slice(0, -1), none: [] };
    const after: SessionSnapshotInput = {
      ...before,
      status: change.status ?? before.status,
      state: { ...before.state, custom: { n: change.n }, messages: kept[change.messages] },
    };
    if (change.resend) Object.assign(after, { parentId: 'resent', createdAt: '2001-01-01T00:00:00.000Z' });
    if (change.session === 'none') removeSession(after);
    if (change.session === 'other') Object.assign(after, { sessionId: 'moved' });
    if (current) return after;
    // A new snapshot needs its own parent and createdAt; only rewrites test that these never change.
    const { parentId: _, ...fresh } = after;
    return { ...fresh, sessionId, createdAt: before.createdAt };
  };
}

function removeSession(input: SessionSnapshotInput): void {
  delete input.sessionId;
  delete input.state?.sessionId;
}
