import * as fc from 'fast-check';
import type { ScopeId, ScopeRecord, StoreCapabilities } from '../../../src/store/contract.ts';
import { equal, show, textOf } from './assertions.ts';
import type { Handle } from './handle.ts';
import { snapshot } from './snapshots.ts';
import { tenantOf } from './tape.ts';

/** Names that a store may confuse or interpret. */
const NAMES = ['a', 'A', 'a/b', 'b', '../a', 'é', 'e\u0301', '__proto__', 'a\u0000', '["a"', 'l'.repeat(1024)];
const KEYS = ['n', '__proto__', 'a.b', '', 'constructor'];

interface Change {
  app: number;
  /** Omitted for the app's own record. */
  user?: number;
  key: number;
  edit: 'set' | 'increment' | 'delete' | 'clear' | 'leave';
}

/** The outcome of the save that contains the changes. */
type Fate = 'saved' | 'skipped' | 'fails' | 'conflict' | 'change fails';

export type ScopeOperation = { by: 0 | 1; tenant: number } & (
  | { op: 'save'; session: number; fate: Fate; value: number; changes: Change[] }
  | { op: 'race'; changes: Change[] }
  | { op: 'remove'; change: Change }
  | { op: 'end'; session: number }
);

export function scopeTapes(able: Readonly<StoreCapabilities>, tenants: number): fc.Arbitrary<ScopeOperation[]> {
  const actor = { by: fc.constantFrom<0 | 1>(0, 1), tenant: tenantOf(tenants) };
  const name = fc.nat(NAMES.length - 1);
  const change: fc.Arbitrary<Change> = fc.record(
    {
      app: name,
      user: name,
      key: fc.nat(KEYS.length - 1),
      edit: fc.constantFrom<Change['edit'][]>('set', 'set', 'increment', 'increment', 'delete', 'clear', 'leave'),
    },
    { requiredKeys: ['app', 'key', 'edit'] },
  );
  const fates: Fate[] = ['saved', 'saved', 'saved', 'skipped', 'fails', 'change fails'];
  if (able.compareLeaf) fates.push('conflict');
  const list = fc.array(change, { minLength: 1, maxLength: 3 });
  const save = fc.record({
    op: fc.constant('save' as const),
    ...actor,
    session: fc.nat(2),
    fate: fc.constantFrom(...fates),
    value: fc.nat(99),
    changes: list,
  });
  const race = fc.record({ op: fc.constant('race' as const), ...actor, changes: list });
  const remove = fc.record({ op: fc.constant('remove' as const), ...actor, change });
  const end = fc.record({ op: fc.constant('end' as const), ...actor, session: fc.nat(2) });
  const operations: fc.WeightedArbitrary<ScopeOperation>[] = [
    { weight: 10, arbitrary: save },
    { weight: 2, arbitrary: race },
    { weight: 1, arbitrary: remove },
  ];
  if (able.delete) operations.push({ weight: 1, arbitrary: end });
  return fc.array(fc.oneof(...operations), { minLength: 1, maxLength: 80, size: 'max' });
}

/** The expected records of one tenant, in a list that is searched from end to end. */
class Model {
  readonly #records: { id: ScopeId; members: Map<string, number> }[] = [];

  of(id: ScopeId): Map<string, number> {
    const found = this.#records.find(({ id: other }) => isSame(id, other));
    if (found) return found.members;
    const members = new Map<string, number>();
    this.#records.push({ id, members });
    return members;
  }

  ids(): ScopeId[] {
    return this.#records.map(({ id }) => id);
  }
}

function isSame(x: ScopeId, y: ScopeId): boolean {
  if (x.scope !== y.scope || x.appName !== y.appName) return false;
  return x.scope === 'app' || (y.scope === 'user' && x.userId === y.userId);
}

/** Runs a tape on a store and on the model, and compares both after each operation. */
export async function playScopes(
  tape: readonly ScopeOperation[],
  tenants: readonly Handle[][],
  canList: boolean,
): Promise<void> {
  const models = tenants.map(() => new Model());
  let saves = 0;
  for (const operation of tape) {
    const model = models[operation.tenant]!;
    const handles = tenants[operation.tenant]!;
    const turn = `turn ${saves++}`;
    await perform(operation, handles, model, turn);
    await compare(model, handles[1 - operation.by]!, turn);
  }
  for (const [i, model] of models.entries()) {
    await compare(model, tenants[i]![0]!, `the end, tenant ${i}`);
    if (!canList) continue;
    const { items } = await tenants[i]![1]!.listScopes({ limit: 1000 });
    const kept = model.ids().filter((id) => model.of(id).size > 0);
    equal(items.map(textOf).toSorted(), kept.map(textOf).toSorted(), `the listed records of tenant ${i}`);
  }
}

async function perform(operation: ScopeOperation, handles: Handle[], model: Model, turn: string): Promise<void> {
  const handle = handles[operation.by]!;
  switch (operation.op) {
    case 'save':
      return save(operation, handle, model, turn);
    case 'race':
      return race(operation.changes, handles, model, turn);
    case 'end':
      return void (await handle.deleteSession(sessionOf(operation.session)));
    case 'remove': {
      const id = idOf(operation.change);
      const members = model.of(id);
      equal(await handle.deleteScope(id), members.size > 0, `the removal of ${show(id)}`);
      members.clear();
    }
  }
}

async function save(
  { session, fate, value, changes }: Extract<ScopeOperation, { op: 'save' }>,
  handle: Handle,
  model: Model,
  turn: string,
): Promise<void> {
  const distinct = changes.filter((change, i) => !changes.slice(0, i).some((one) => isSame(idOf(one), idOf(change))));
  const scopes = distinct.map((change, i) => ({
    id: idOf(change),
    change: (record: ScopeRecord) => {
      if (fate === 'change fails' && i === distinct.length - 1) throw new Error('mine');
      return edited(record, change, value);
    },
  }));
  const mutator = () => {
    if (fate === 'fails') throw new Error('mine');
    return fate === 'skipped' ? null : snapshot({ sessionId: sessionOf(session) });
  };
  const expected = fate === 'conflict' && { expectedLeafId: 'never saved' };
  const saved = await handle.save(turn, mutator, { scopes, ...expected }).catch((error: unknown) => error as Error);
  const isSaved = saved === turn;
  equal(isSaved, fate === 'saved', `whether ${turn} was saved`);
  if (isSaved) for (const change of distinct) apply(model, change, value);
}

/** Makes the same edits as separate saves, all at once. Each adds to a different key, so that their order does not matter. */
async function race(changes: readonly Change[], handles: Handle[], model: Model, turn: string): Promise<void> {
  const racing = changes.flatMap((change) =>
    Array.from({ length: 3 }, () => ({ ...change, edit: 'increment' as const })),
  );
  const saves = racing.map((change, i) =>
    handles[i % 2]!.save(`${turn}.${i}`, snapshot({ sessionId: `racing ${i}` }), {
      scopes: [{ id: idOf(change), change: (record) => edited(record, change, 0) }],
    }),
  );
  await Promise.all(saves);
  for (const change of racing) apply(model, change, 0);
}

async function compare(model: Model, handle: Handle, when: string): Promise<void> {
  const ids = model.ids();
  const records = await handle.readScopes(ids);
  for (const [i, id] of ids.entries()) {
    const found = new Map(Object.entries(records[i]!));
    equal(found.size, model.of(id).size, `the keys of ${show(id)} at ${when}`);
    for (const [key, value] of model.of(id)) equal(found.get(key), value, `${show(key)} of ${show(id)} at ${when}`);
  }
}

function edited(record: ScopeRecord, { key, edit }: Change, value: number): ScopeRecord | undefined {
  if (edit === 'leave') return undefined;
  const members = new Map(Object.entries(record));
  const name = KEYS[key]!;
  if (edit === 'clear') members.clear();
  else if (edit === 'delete') members.delete(name);
  else members.set(name, edit === 'set' ? value : Number(members.get(name) ?? 0) + 1);
  return Object.fromEntries(members);
}

function apply(model: Model, change: Change, value: number): void {
  const members = model.of(idOf(change));
  const next = edited(Object.fromEntries(members), change, value);
  if (!next) return;
  members.clear();
  for (const [key, member] of Object.entries(next)) members.set(key, member as number);
}

function idOf({ app, user }: Change): ScopeId {
  const appName = NAMES[app]!;
  return user === undefined ? { scope: 'app', appName } : { scope: 'user', appName, userId: NAMES[user]! };
}

function sessionOf(session: number): string {
  return `session ${session}`;
}
