import * as fc from 'fast-check';
import type { StoreCapabilities, WriteRecordOptions } from '../../../src/store/contract.ts';
import { equal, refuses, show } from './assertions.ts';
import type { Handle } from './handle.ts';
import { snapshot } from './snapshots.ts';

/** Names that a store may confuse or interpret; each is used as a session, a kind and a key. */
const NAMES = ['a', 'A', 'a/b', 'b', 'b/b', '__proto__'];

type Named = { session: number; kind: number; key: number };

export type RecordOperation = { by: 0 | 1 } & (
  | ({ op: 'write' } & Named & { value: number; isRemoval: boolean; expects: Expected; isFor: Bound })
  | { op: 'save' | 'delete'; session: number }
  | { op: 'prune' }
);

/** The revision that a write expects: any, the current one, no record, or an old one. */
type Expected = 'any' | 'current' | 'none' | 'old';
/** The snapshot that a write requires: none, a snapshot of its session, or one that was removed or belongs to another session. */
type Bound = 'any' | 'own' | 'other';

export function recordTapes(able: Readonly<StoreCapabilities>): fc.Arbitrary<RecordOperation[]> {
  const by = fc.constantFrom<0 | 1>(0, 1);
  const name = fc.nat(NAMES.length - 1);
  const write = fc.record({
    op: fc.constant('write' as const),
    by,
    session: name,
    kind: name,
    key: name,
    value: fc.nat(99),
    isRemoval: fc.boolean(),
    expects: fc.constantFrom<Expected[]>('any', 'current', 'current', 'none', 'old'),
    isFor: fc.constantFrom<Bound[]>('any', 'any', 'own', 'own', 'other'),
  });
  const save = fc.record({ op: fc.constant('save' as const), by, session: name });
  const operations: fc.WeightedArbitrary<RecordOperation>[] = [
    { weight: 10, arbitrary: write },
    { weight: 3, arbitrary: save },
  ];
  if (able.delete) {
    operations.push({ weight: 1, arbitrary: fc.record({ op: fc.constant('delete' as const), by, session: name }) });
  }
  if (able.prune) operations.push({ weight: 1, arbitrary: fc.record({ op: fc.constant('prune' as const), by }) });
  return fc.array(fc.oneof(...operations), { minLength: 1, maxLength: 60, size: 'max' });
}

interface Row {
  readonly sessionId: string;
  readonly kind: string;
  readonly key: string;
  readonly value: number;
  readonly revision: string;
}

/** The expected records, in lists that are searched from end to end. */
class Model {
  rows: Row[] = [];
  snapshots: { readonly id: string; readonly sessionId: string }[] = [];
  /** The revisions of all writes. */
  readonly revisions: string[] = [];

  find(name: Pick<Row, 'sessionId' | 'kind' | 'key'>): Row | undefined {
    return this.rows.find((row) => isSame(row, name));
  }

  end(sessionIds: readonly string[]): void {
    this.rows = this.rows.filter((row) => !sessionIds.includes(row.sessionId));
    this.snapshots = this.snapshots.filter(({ sessionId }) => !sessionIds.includes(sessionId));
  }
}

function isSame(x: Pick<Row, 'sessionId' | 'kind' | 'key'>, y: Pick<Row, 'sessionId' | 'kind' | 'key'>): boolean {
  return x.sessionId === y.sessionId && x.kind === y.kind && x.key === y.key;
}

/** Runs a tape on a store and on the model, and compares both after each operation. */
export async function playRecords(tape: readonly RecordOperation[], handles: readonly Handle[]): Promise<void> {
  const model = new Model();
  for (const [turn, operation] of tape.entries()) {
    await perform(operation, handles[operation.by]!, model, turn);
    for (const sessionId of NAMES) {
      const read = await handles[1 - operation.by]!.readRecords({ sessionId });
      const expected = model.rows.filter((row) => row.sessionId === sessionId);
      const order = expected.map(({ kind, key, value, revision }) => ({ kind, key, value, revision })).toSorted(byName);
      equal(read, order, `the records of ${show(sessionId)} after operation ${turn}`);
    }
  }
}

function byName(x: { kind: string; key: string }, y: { kind: string; key: string }): number {
  if (x.kind !== y.kind) return x.kind < y.kind ? -1 : 1;
  return x.key < y.key ? -1 : 1;
}

async function perform(operation: RecordOperation, handle: Handle, model: Model, turn: number): Promise<void> {
  switch (operation.op) {
    case 'write':
      return write(operation, handle, model);
    case 'save': {
      const sessionId = NAMES[operation.session]!;
      await handle.save(`turn ${turn}`, snapshot({ sessionId }));
      return void model.snapshots.push({ id: `turn ${turn}`, sessionId });
    }
    case 'delete':
      await handle.deleteSession(NAMES[operation.session]!);
      return model.end([NAMES[operation.session]!]);
    case 'prune':
      await handle.prune({ idleMs: 0 });
      return model.end(model.snapshots.map(({ sessionId }) => sessionId));
  }
}

async function write(
  operation: Extract<RecordOperation, { op: 'write' }>,
  handle: Handle,
  model: Model,
): Promise<void> {
  const { session, kind, key, value, isRemoval, expects, isFor } = operation;
  const name = { sessionId: NAMES[session]!, kind: NAMES[kind]!, key: NAMES[key]! };
  const current = model.find(name)?.revision ?? null;
  const old = model.revisions.find((revision) => revision !== current) ?? 'unknown';
  const expected = { any: undefined, current, none: null, old }[expects];
  const ownId = model.snapshots.find(({ sessionId }) => sessionId === name.sessionId)?.id;
  const otherId = model.snapshots.find(({ sessionId }) => sessionId !== name.sessionId)?.id ?? 'never saved';
  const ifSnapshot = { any: undefined, own: ownId ?? 'never saved', other: otherId }[isFor];
  const options: WriteRecordOptions = {
    ...name,
    value: isRemoval ? undefined : value,
    ...(expected !== undefined && { expectedRevision: expected }),
    ...(ifSnapshot !== undefined && { ifSnapshot }),
  };
  const isRefused =
    (expected !== undefined && expected !== current) || (ifSnapshot !== undefined && ifSnapshot !== ownId);
  if (isRefused) return void (await refuses('ABORTED', () => handle.writeRecord(options)));
  const revision = await handle.writeRecord(options);
  model.rows = model.rows.filter((row) => !isSame(row, name));
  equal(revision === null, isRemoval, `whether ${show(name)} was removed`);
  if (revision === null) return;
  equal(model.revisions.includes(revision), false, `whether the revision of ${show(name)} was there before`);
  model.revisions.push(revision);
  model.rows.push({ ...name, value, revision });
}
