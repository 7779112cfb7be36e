import assert from 'node:assert/strict';
import type {
  PageOptions,
  Page,
  SessionSnapshot,
  SessionSnapshotInput,
  SnapshotMutator,
} from '../../../src/store/contract.ts';
import { ReferenceModel, type SaveOutcome } from '../model/reference-model.ts';
import { hoursAgo } from '../sessions/retention.ts';
import { equal, show, statusOf, textOf } from './assertions.ts';
import type { Handle } from './handle.ts';
import type { Kit } from './kit.ts';
import { snapshot } from './snapshots.ts';
import { editing, type Edit, type Operation } from './tape.ts';
import { WatchLog } from './watch-log.ts';

type Of<Name extends Operation['op']> = Extract<Operation, { op: Name }>;

/** The data of one tenant. */
interface Tenant {
  handles: readonly [Handle, Handle];
  model: ReferenceModel;
  /** Every id that was ever saved, in the order of the first saves. */
  ids: string[];
}

const SESSIONS = ['first session', 'second/../session', 'third \u0000 é'];

/** Runs a tape on a store and on the reference model, and compares both after each operation. */
export class Player {
  readonly #kit: Kit;
  readonly #tenants: readonly Tenant[];
  readonly #watching: WatchLog[] = [];
  #saves = 0;

  constructor(kit: Kit, tenants: readonly (readonly [Handle, Handle])[]) {
    this.#kit = kit;
    this.#tenants = tenants.map((handles) => ({ handles, model: new ReferenceModel(), ids: [] }));
  }

  async play(tape: readonly Operation[]): Promise<void> {
    try {
      for (const operation of tape) await this.#perform(operation);
      for (const tenant of this.#tenants) await this.#compareAll(tenant);
      for (const log of this.#watching) await log.settled(this.#kit);
    } finally {
      for (const log of this.#watching) log.end();
    }
  }

  #perform(operation: Operation): Promise<void> {
    const tenant = this.#tenants[operation.tenant]!;
    switch (operation.op) {
      case 'save':
        return this.#save(tenant, operation);
      case 'rewrite':
        return this.#rewrite(tenant, operation);
      case 'race':
        return this.#race(tenant, operation);
      case 'skip':
        return this.#skip(tenant, operation);
      case 'delete':
        return this.#delete(tenant, operation);
      case 'prune':
        return this.#prune(tenant, operation);
      case 'list':
        return this.#list(tenant, operation);
      case 'watch':
        return this.#watch(tenant, operation);
      case 'unwatch':
        return this.#unwatch(operation);
    }
  }

  async #save(tenant: Tenant, { by, session, parent, plan, id: naming }: Of<'save'>): Promise<void> {
    const sessionId = session === undefined ? undefined : SESSIONS[session]!;
    const given = this.#newId();
    const parentId = this.#parentId(tenant, sessionId, parent);
    const input: SessionSnapshotInput = {
      ...snapshot({
        status: plan.status,
        createdAt: hoursAgo(plan.ageHours),
        custom: { n: plan.n },
        messages: plan.n % 50,
      }),
      ...(sessionId !== undefined && { sessionId }),
      ...(parentId !== undefined && { parentId }),
      ...(naming === 'in answer' && { snapshotId: given }),
    };
    const expectedLeafId = sessionId === undefined ? undefined : this.#expectation(tenant, sessionId, plan.expected);
    const save = tenant.handles[by].save(naming === 'given' ? given : undefined, input, { expectedLeafId });
    const outcome = await outcomeOf(save);
    const id = ('id' in outcome ? outcome.id : undefined) ?? (naming === 'new' ? 'an id that was never given' : given);
    assert.ok(naming === 'new' || id === given, `the snapshot was to be ${show(given)} and is ${show(id)}`);
    await this.#settle(tenant, by, id, () => input, outcome, expectedLeafId);
    await this.#compare(tenant, by, id, sessionId);
  }

  async #rewrite(tenant: Tenant, { by, target, edit, expected }: Of<'rewrite'>): Promise<void> {
    const id = this.#target(tenant, target);
    const sessionId = this.#sessionOf(tenant, id);
    const mutator = editing(edit, sessionId ?? SESSIONS[0]!);
    const expectedLeafId = sessionId === undefined ? undefined : this.#expectation(tenant, sessionId, expected);
    const outcome = await outcomeOf(tenant.handles[by].save(id, mutator, { expectedLeafId }));
    await this.#settle(tenant, by, id, mutator, outcome, expectedLeafId);
    await this.#compare(tenant, by, id, sessionId);
  }

  /** Makes several edits of one snapshot at once. The outcome must be the outcome of one of their orders. */
  async #race(tenant: Tenant, { by, target, edits }: Of<'race'>): Promise<void> {
    const id = target === 'new' ? this.#newId() : this.#target(tenant, target);
    const sessionId = this.#sessionOf(tenant, id) ?? SESSIONS[0]!;
    const mutators = edits.map((edit: Edit) => editing(edit, sessionId));
    const saves = mutators.map(async (mutator, i): Promise<Save> => {
      return { mutator, outcome: await outcomeOf(tenant.handles[(by + i) % 2]!.save(id, mutator)) };
    });
    const race = await Promise.all(saves);
    const read = textOf(await tenant.handles[by].byId(id));
    const possible = permutations(race).flatMap((order) => replay(tenant.model, id, order));
    const fitting = possible.filter(({ model }) => read === textOf(model.get(id)));
    const [first] = fitting;
    const outcomes = show(race.map(({ outcome }) => outcome));
    assert.ok(first, `no order of the racing saves of ${show(id)} gives ${outcomes} and leaves ${read}`);
    tenant.model = first.model;
    if (first.states.length > 0) this.#remember(tenant, id);
    // Only a watcher may have seen which of the orders it was.
    await this.#noteWrites(
      tenant,
      id,
      undefined,
      first.states.map((_, i) => fitting.map(({ states }) => states[i]!)),
    );
    await this.#compare(tenant, by, id, sessionId);
  }

  async #skip(tenant: Tenant, { by, target, throws }: Of<'skip'>): Promise<void> {
    const id = this.#target(tenant, target);
    const mine = new Error('mine');
    const save = tenant.handles[by].save(id, (current) => {
      equal(current, tenant.model.get(id), 'what the mutator got');
      if (throws) throw mine;
      return null;
    });
    if (throws) await assert.rejects(save, (error) => error === mine);
    else equal(await save, null, 'the result of a skipped save');
    await this.#compare(tenant, by, id, this.#sessionOf(tenant, id));
  }

  async #delete(tenant: Tenant, { by, session }: Of<'delete'>): Promise<void> {
    const sessionId = SESSIONS[session]!;
    const { snapshots } = await tenant.handles[by].deleteSession(sessionId);
    equal(snapshots, tenant.model.deleteSession(sessionId), 'deleted snapshots');
    await this.#compareAll(tenant);
  }

  async #prune(tenant: Tenant, { by, policy, dryRun }: Of<'prune'>): Promise<void> {
    const { sessions, snapshots } = await tenant.handles[by].prune(policy, { dryRun });
    equal({ sessions, snapshots }, tenant.model.prune(policy, Date.now(), dryRun), 'the counts of pruning');
    await this.#compareAll(tenant);
  }

  async #list({ handles, model }: Tenant, { by, session, limit }: Of<'list'>): Promise<void> {
    const handle = handles[by];
    const sessionId = SESSIONS[session]!;
    const snapshots = await pages(limit, (options) => handle.listSnapshots({ ...options, sessionId }));
    equal(snapshots, model.list(sessionId), `the snapshots of ${show(sessionId)}`);
    equal(await pages(limit, (options) => handle.listSessions(options)), model.sessions(), 'the sessions');
  }

  async #watch(tenant: Tenant, { by, target }: Of<'watch'>): Promise<void> {
    const id = target === 'future' ? this.#idAfter(this.#saves) : this.#target(tenant, target);
    const log = new WatchLog(tenant.handles[by], id, tenant.model.get(id));
    this.#watching.push(log);
    if (tenant.model.get(id))
      await this.#kit.eventually(() => log.hasNotification, `the first notification of ${show(id)}`);
  }

  async #unwatch({ watcher }: Of<'unwatch'>): Promise<void> {
    this.#watching[watcher % Math.max(this.#watching.length, 1)]?.end();
  }

  /** Runs the store's operation on the model, and compares the outcomes. */
  async #settle(
    tenant: Tenant,
    by: 0 | 1,
    id: string,
    mutator: SnapshotMutator,
    outcome: Outcome,
    expectedLeafId: string | null | undefined,
  ): Promise<void> {
    const predicted = tenant.model.save(id, mutator, expectedLeafId);
    assert.ok(agrees(outcome, predicted), `saving ${show(id)} gave ${show(outcome)} instead of ${show(predicted)}`);
    if ('refused' in predicted) return;
    if (predicted.id === null) return;
    this.#remember(tenant, id);
    await this.#noteWrites(tenant, id, by, [[tenant.model.get(id)!]]);
  }

  /**
   * Notes the writes of a snapshot for its watchers, one by one. Each write lists the snapshots that it may have made. `undefined` as the
   * handle: several handles wrote.
   */
  async #noteWrites(
    tenant: Tenant,
    id: string,
    by: 0 | 1 | undefined,
    writes: readonly (readonly SessionSnapshot[])[],
  ): Promise<void> {
    const [a, b] = tenant.handles;
    for (const log of this.#watching) {
      if (log.snapshotId !== id || !tenant.handles.includes(log.handle)) continue;
      const isOwn = a.store === b.store || (by !== undefined && tenant.handles[by] === log.handle);
      const foreign = this.#kit.capabilities.watchAcrossProcesses ? (by === undefined ? 'crowd' : 'other') : 'silent';
      await log.wrote(this.#kit, isOwn ? 'own' : foreign, writes);
    }
  }

  /** Compares the data of an operation, read through the other handle. */
  async #compare({ handles, model }: Tenant, by: 0 | 1, id: string, sessionId: string | undefined): Promise<void> {
    const other = handles[by === 0 ? 1 : 0];
    equal(await other.byId(id), model.get(id), show(id));
    if (sessionId !== undefined)
      equal(await other.bySession(sessionId), model.leaf(sessionId), `the leaf of ${show(sessionId)}`);
  }

  async #compareAll({ handles, model, ids }: Tenant): Promise<void> {
    for (const handle of new Set(handles)) {
      for (const id of ids) equal(await handle.byId(id), model.get(id), show(id));
      for (const sessionId of SESSIONS) {
        equal(await handle.bySession(sessionId), model.leaf(sessionId), `the leaf of ${show(sessionId)}`);
        if (!this.#kit.capabilities.list) continue;
        equal(
          (await handle.listSnapshots({ sessionId })).items,
          model.list(sessionId),
          `the list of ${show(sessionId)}`,
        );
      }
      if (this.#kit.capabilities.list) equal((await handle.listSessions()).items, model.sessions(), 'the sessions');
    }
  }

  #newId(): string {
    return this.#idAfter(this.#saves++);
  }

  /** Returns the id of a future or earlier save. Some ids are plain, some are hostile. */
  #idAfter(save: number): string {
    return [`turn ${save}`, `../turn ${save}`, `Turn/${save}\u0000`, `túrn ${save}`][save % 4]!;
  }

  #target(tenant: Tenant, target: number): string {
    return tenant.ids[target % Math.max(tenant.ids.length, 1)] ?? this.#idAfter(this.#saves);
  }

  #parentId(tenant: Tenant, sessionId: string | undefined, parent: Of<'save'>['parent']): string | undefined {
    if (parent === 'none') return undefined;
    if (parent === 'missing') return 'never saved';
    if (parent === 'future') return this.#idAfter(this.#saves + 1);
    if (parent === 'leaf') return sessionId === undefined ? undefined : tenant.model.leaf(sessionId)?.snapshotId;
    return tenant.ids[parent % Math.max(tenant.ids.length, 1)];
  }

  #sessionOf({ model }: Tenant, id: string): string | undefined {
    const known = model.get(id);
    return known?.sessionId ?? known?.state?.sessionId;
  }

  #expectation(
    tenant: Tenant,
    sessionId: string,
    expected: 'leaf' | 'none' | 'stale' | undefined,
  ): string | null | undefined {
    if (expected === 'leaf') return tenant.model.leaf(sessionId)?.snapshotId ?? null;
    if (expected === 'none') return null;
    return expected === 'stale' ? (tenant.ids[0] ?? 'never saved') : undefined;
  }

  #remember(tenant: Tenant, id: string): void {
    if (!tenant.ids.includes(id)) tenant.ids.push(id);
  }
}

type Outcome = { id: string | null } | { error: string };

/** A save and its outcome. */
interface Save {
  mutator: SnapshotMutator;
  outcome: Outcome;
}

async function outcomeOf(save: Promise<string | null>): Promise<Outcome> {
  try {
    return { id: await save };
  } catch (error) {
    return { error: statusOf(error) };
  }
}

function agrees(outcome: Outcome, predicted: SaveOutcome): boolean {
  if ('error' in outcome) return 'refused' in predicted && predicted.refused.includes(outcome.error);
  return 'id' in predicted && predicted.id === outcome.id;
}

/** Replays the saves in this order. Returns the snapshot after each write; `undefined` if the outcomes would differ. */
function replay(
  before: ReferenceModel,
  id: string,
  order: readonly Save[],
): { model: ReferenceModel; states: SessionSnapshot[] }[] {
  const model = before.clone();
  const states: SessionSnapshot[] = [];
  const fits = order.every(({ mutator, outcome }) => {
    const predicted = model.save(id, mutator);
    if ('id' in predicted) states.push(model.get(id)!);
    return agrees(outcome, predicted);
  });
  return fits ? [{ model, states }] : [];
}

async function pages<T>(limit: number, list: (options: PageOptions) => Promise<Page<T>>): Promise<T[]> {
  const items: T[] = [];
  let page: Page<T> | undefined;
  do {
    page = await list({ limit, ...(page?.nextCursor !== undefined && { cursor: page.nextCursor }) });
    items.push(...page.items);
  } while (page.nextCursor !== undefined);
  return items;
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, i) => permutations(items.toSpliced(i, 1)).map((rest) => [item].concat(rest)));
}
