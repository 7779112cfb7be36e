import { failedPrecondition, invalidArgument, isUnreadable, quote, SessionConflictError } from '../../errors.ts';
import { metadataOf, revise, sessionOf } from '../../snapshot/snapshot.ts';
import {
  canCheck,
  capabilitiesOf,
  type CheckOptions,
  type CheckResult,
  keepsRecords,
  keepsScopes,
  type DeleteResult,
  type ListSessionsOptions,
  type Page,
  type PageOptions,
  type PrunePolicy,
  type PruneResult,
  type ReadRecordsOptions,
  type RecordStore,
  type SaveSnapshotOptions,
  type ScopeId,
  type ScopeRecord,
  type ScopeStore,
  type SessionRecord,
  type SessionSnapshot,
  type SessionStore,
  type SessionStoreOptions,
  type SessionSummary,
  type SnapshotLookup,
  type SnapshotMetadata,
  type SnapshotMutator,
  type SnapshotStore,
  type StoreCapabilities,
  type Unreadable,
  type WriteRecordOptions,
} from '../contract.ts';
import { assertFunction, checkLookup, checkSession } from '../check-lookup.ts';
import { assertExpectedLeaf } from '../choose-leaf.ts';
import { checkPage, encodeCursor } from '../list/page.ts';
import { readFromBoth, writeThrough, type RecordStores } from './migrating-records.ts';
import { deleteScopeOfBoth, readScopesOfBoth, saveWithScopes, type ScopeStores } from './migrating-scopes.ts';

/** The two stores of {@link migratingStore}. */
export interface MigratingStoreOptions<S = unknown> {
  /**
   * The store that the application used until now, Genkit's or any other. It is read; only `deleteSession`, `prune` and the removal of a record of a
   * session, a user or an app change it.
   */
  readonly from: SessionStore<S>;
  /** The store for all new data. */
  readonly to: SnapshotStore<S>;
}

/**
 * A store for a migration: it reads `to` first and falls back to `from`, and saves only to `to`. A session of `from` continues in `to`:
 * its next snapshot keeps its `parentId`, so the history before it is still read from `from`. The old version of the application
 * finds `from` unchanged, without the turns that were added in `to`.
 *
 * - An `expectedLeafId` that is in `from` counts as `null` in `to`.
 * - A save of a snapshot that only `from` has is made in `to`, from the content in `from`. It must be its session's latest leaf there,
 *   otherwise the save is refused with `FAILED_PRECONDITION`.
 * - Lists show the sessions of both stores if `from` can list; a session that is in both is shown as in `to`. Otherwise they show those of `to`,
 *   and `eraseUser`, exports and retention are refused.
 * - `deleteSession` and `prune` work on both stores. If `from` can't do the same, `prune`, and `deleteSession` of a session in `from`, delete
 *   nothing and throw `FAILED_PRECONDITION`.
 * - `deleteSession` with an `expectedLeafId` first compares the leaf, then deletes in both stores: a turn that is saved in between is lost.
 * - Records of users and apps are those of both stores if `from` keeps them; a record that is in both is read from `to`. The first change of a record
 *   copies its other values from `from` to `to`. The removal of a record, or of its last value, works on both.
 * - Session records are those of both stores if `from` keeps records; a record that is in both is read from `to`. The removal of a record works on
 *   both. A record that is written while its session is only in `from` is an orphan in `to`: `prune` removes it after an hour, unless the
 *   session has continued by then.
 *
 * `close()` closes both stores.
 *
 * @throws `INVALID_ARGUMENT` when one of the two is not a store.
 *
 * @example
 * const store = migratingStore({ from: oldStore, to: new FileSessionStore('.data/sessions') });
 * const support = defineAgent(ai, { name: 'support', model, store });
 */
export function migratingStore<S = unknown>(
  options: MigratingStoreOptions<S>,
): SnapshotStore<S> & ScopeStore & RecordStore {
  const { from, to } = options ?? {};
  for (const [name, store] of Object.entries({ from, to })) {
    if (typeof (store as SessionStore<S> | undefined)?.getSnapshot !== 'function') {
      throw invalidArgument(`migratingStore: ${name} must be a session store.`);
    }
  }
  if (!(to as Partial<SnapshotStore<S>>).capabilities) {
    throw invalidArgument('migratingStore: to must be a store of this package, or one that declares its capabilities.');
  }
  return new MigratingStore(from, to);
}

class MigratingStore<S> implements SnapshotStore<S>, ScopeStore, RecordStore {
  readonly capabilities: Readonly<StoreCapabilities>;
  readonly #from: SessionStore<S>;
  readonly #to: SnapshotStore<S>;
  /** `from`, for what its capabilities say that it can do. */
  readonly #old: SnapshotStore<S>;
  readonly #oldCan: Readonly<StoreCapabilities>;

  constructor(from: SessionStore<S>, to: SnapshotStore<S>) {
    this.#from = from;
    this.#to = to;
    this.#old = from as SnapshotStore<S>;
    this.#oldCan = capabilitiesOf(from);
    const can = this.#oldCan;
    this.capabilities = {
      ...to.capabilities,
      delete: to.capabilities.delete && can.delete,
      prune: to.capabilities.prune && can.prune,
      // Sessions of a store without owners are in no list of an owner.
      ...((!can.list || !can.details || can.incompleteLists) && { incompleteLists: true }),
    };
  }

  async getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined> {
    return (await this.#to.getSnapshot(lookup)) ?? this.#from.getSnapshot(lookup);
  }

  async getSnapshotMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> {
    return (await this.#to.getSnapshotMetadata(lookup)) ?? this.#oldMetadata(lookup);
  }

  async saveSnapshot(
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    given: SaveSnapshotOptions = {},
  ): Promise<string | null> {
    assertFunction(mutator, 'mutator');
    const old = await this.#onlyInFrom(snapshotId, given);
    const options = await this.#seenByTo(given);
    const saveIn = (expected: SaveSnapshotOptions): Promise<string | null> =>
      this.#to.saveSnapshot(snapshotId, old ? continuing(old, mutator) : mutator, expected);
    const save = (expected: SaveSnapshotOptions): Promise<string | null> =>
      saveWithScopes(this.#from, expected, saveIn);
    if (options.expectedLeafId === null) await this.#assertNoLeafInFrom(mutator, options);
    if (typeof options.expectedLeafId !== 'string') return save(options);
    try {
      return await save(options);
    } catch (error) {
      if (!SessionConflictError.isInstance(error) || error.actualLeafId !== null) throw error;
      const leaf = await this.#oldMetadata({ sessionId: error.sessionId, context: options.context });
      if (leaf?.snapshotId !== options.expectedLeafId) {
        throw new SessionConflictError({
          sessionId: error.sessionId,
          expectedLeafId: options.expectedLeafId,
          actualLeafId: leaf?.snapshotId ?? null,
        });
      }
      return save({ ...options, expectedLeafId: null });
    }
  }

  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
    options?: SessionStoreOptions,
  ): () => void {
    let endOld: (() => void) | undefined;
    // A snapshot in `to` is newer than the one in `from`.
    const endNew = this.#to.onSnapshotStateChange(
      snapshotId,
      (snapshot) => {
        endOld?.();
        callback(snapshot);
      },
      options,
    );
    endOld = this.#from.onSnapshotStateChange?.(snapshotId, callback, options) ?? undefined;
    return () => {
      endOld?.();
      endNew();
    };
  }

  async listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>> {
    checkSession(options);
    const isInTo = async ({ snapshotId }: SnapshotMetadata): Promise<boolean> =>
      has(this.#to.getSnapshotMetadata({ snapshotId, context: options.context }));
    const first = this.#oldCan.list ? (part: typeof options) => this.#old.listSnapshots(part) : undefined;
    return bothPages(options, [first && hiding(first, isInTo), (part) => this.#to.listSnapshots(part)]);
  }

  async listSessions(options: ListSessionsOptions = {}): Promise<Page<SessionSummary>> {
    const isInTo = async ({ sessionId }: SessionSummary): Promise<boolean> =>
      has(this.#to.getSnapshotMetadata({ sessionId, context: options.context }));
    // A store without owners has no sessions of this owner.
    const canList = this.#oldCan.list && (options.ownerId === undefined || this.#oldCan.details);
    const second = canList ? (part: typeof options) => this.#old.listSessions(part) : undefined;
    return bothPages(options, [(part) => this.#to.listSessions(part), second && hiding(second, isInTo)]);
  }

  async deleteSession(
    options: SessionStoreOptions & { sessionId: string; expectedLeafId?: string },
  ): Promise<DeleteResult> {
    const { expectedLeafId, ...rest } = options;
    if (expectedLeafId !== undefined) {
      const leaf = await this.getSnapshotMetadata(rest);
      assertExpectedLeaf(expectedLeafId, checkSession(rest), leaf?.snapshotId ?? null);
    }
    return this.#deleteSession(rest);
  }

  async #deleteSession(options: SessionStoreOptions & { sessionId: string }): Promise<DeleteResult> {
    const sessionId = checkSession(options);
    const canDelete = this.#oldCan.delete;
    // Without its snapshots in `to`, the session would be read as it was in `from`.
    if (!canDelete && (await this.#from.getSnapshot(options)))
      throw this.#refusal(`delete session ${quote(sessionId)}`);
    const old = canDelete ? await this.#old.deleteSession(options) : { snapshots: 0, shards: 0 };
    // `to` is last: while `from` still had the session, other callers may have continued it in `to`.
    const { snapshots, shards } = await this.#to.deleteSession(options);
    return { snapshots: old.snapshots + snapshots, shards: old.shards + shards };
  }

  async prune(
    policy: PrunePolicy,
    options?: SessionStoreOptions & { dryRun?: boolean; sessionId?: string },
  ): Promise<PruneResult> {
    if (!this.#oldCan.prune) throw this.#refusal('prune');
    const pruned = await this.#to.prune(policy, options);
    const { sessions, snapshots, shards } = await this.#old.prune(policy, options);
    return {
      sessions: pruned.sessions + sessions,
      snapshots: pruned.snapshots + snapshots,
      shards: pruned.shards + shards,
      dryRun: pruned.dryRun,
    };
  }

  async readScopes(options: SessionStoreOptions & { scopes: readonly ScopeId[] }): Promise<ScopeRecord[]> {
    return readScopesOfBoth(this.#scopeStores(), options);
  }

  async deleteScope(options: SessionStoreOptions & { scope: ScopeId }): Promise<boolean> {
    return deleteScopeOfBoth(this.#scopeStores(), options);
  }

  async listScopes(options: PageOptions = {}): Promise<Page<ScopeId>> {
    const { from, to } = this.#scopeStores();
    const isInTo = async (scope: ScopeId): Promise<boolean> =>
      has(to.readScopes({ context: options.context, scopes: [scope] }).then(([values]) => Object.keys(values!)[0]));
    const second = keepsScopes(from) ? (part: PageOptions) => from.listScopes(part) : undefined;
    return bothPages(options, [(part) => to.listScopes(part), second && hiding(second, isInTo)]);
  }

  async readRecords(options: ReadRecordsOptions): Promise<SessionRecord[]> {
    return readFromBoth(this.#recordStores(), options);
  }

  async writeRecord(options: WriteRecordOptions): Promise<string | null> {
    return writeThrough(this.#recordStores(), options);
  }

  /** Checks both stores, as far as they have checks. */
  async check(options?: CheckOptions): Promise<CheckResult> {
    const result: CheckResult = { sessions: 0, snapshots: 0, records: 0, scopes: 0, findings: [] };
    for (const store of [this.#to, this.#from]) {
      if (!canCheck(store)) continue;
      const { findings, ...counts } = await store.check(options);
      for (const name of Object.keys(counts) as (keyof typeof counts)[]) result[name] += counts[name];
      result.findings.push(...findings);
    }
    return result;
  }

  async close(): Promise<void> {
    const old: Partial<SnapshotStore<S>> = this.#old;
    await Promise.all([this.#to.close(), Promise.resolve(old.close?.())]);
  }

  #refusal(action: string): Error {
    return failedPrecondition(
      `The store that migratingStore reads from can't ${action}, so nothing was deleted. ` +
        'Move its sessions with copySessions, then use the new store alone.',
    );
  }

  #scopeStores(): ScopeStores<S> {
    if (keepsScopes(this.#to)) return { from: this.#from, to: this.#to };
    throw failedPrecondition('The store that migratingStore writes to does not keep records of users and apps.');
  }

  #recordStores(): RecordStores<S> {
    if (keepsRecords(this.#to)) return { from: this.#from, to: this.#to };
    throw failedPrecondition('The store that migratingStore writes to does not keep session records.');
  }

  async #oldMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> {
    if (this.#oldCan.metadata) return this.#old.getSnapshotMetadata(lookup);
    const snapshot = await this.#from.getSnapshot(lookup);
    return snapshot && metadataOf(snapshot);
  }

  /** The snapshot that a save is about to rewrite, when only `from` has it. */
  async #onlyInFrom(
    snapshotId: string | undefined,
    { context }: SessionStoreOptions,
  ): Promise<SessionSnapshot<S> | undefined> {
    if (snapshotId === undefined) return undefined;
    checkLookup({ snapshotId });
    if (await this.#to.getSnapshotMetadata({ snapshotId, context })) return undefined;
    const old = await this.#from.getSnapshot({ snapshotId, context });
    const sessionId = old && sessionOf(old);
    if (sessionId === undefined) return old;
    const leaf = await this.getSnapshotMetadata({ sessionId, context });
    if (leaf?.snapshotId === snapshotId) return old;
    throw failedPrecondition(
      `Snapshot ${quote(snapshotId)} is in the store that migratingStore reads from, and its session continued after it, so it can't be ` +
        `rewritten. Move the session with copySessions first.`,
    );
  }

  /** The options without a required snapshot that only `from` has. */
  async #seenByTo(options: SaveSnapshotOptions): Promise<SaveSnapshotOptions> {
    const { ifSnapshot: snapshotId, ...rest } = options;
    const { context } = options;
    if (snapshotId === undefined || (await this.#to.getSnapshotMetadata({ snapshotId, context }))) return options;
    return (await this.#oldMetadata({ snapshotId, context })) ? rest : options;
  }

  /** A save that expects a session without snapshots: `from` must have none either. */
  async #assertNoLeafInFrom(mutator: SnapshotMutator<S>, { context }: SessionStoreOptions): Promise<void> {
    const answer = mutator(undefined);
    const sessionId = answer ? sessionOf(answer) : undefined;
    const leaf = sessionId === undefined ? undefined : await this.#oldMetadata({ sessionId, context });
    if (!leaf || (await this.#to.getSnapshotMetadata({ sessionId: sessionId!, context }))) return;
    throw new SessionConflictError({ sessionId: sessionId!, expectedLeafId: null, actualLeafId: leaf.snapshotId });
  }
}

/** The mutator for a snapshot that only `from` has: it gets that snapshot, and its result must follow the rules of a rewrite. */
function continuing<S>(old: SessionSnapshot<S>, mutator: SnapshotMutator<S>): SnapshotMutator<S> {
  return (current) => {
    if (current) return mutator(current);
    const answer = mutator(old);
    return answer && revise(old.snapshotId, old as SessionSnapshot, answer, () => old.createdAt);
  };
}

/** Whether a read finds something. Data that can't be read is there. */
function has(reading: Promise<unknown>): Promise<boolean> {
  return reading.then(
    (found) => found !== undefined,
    (error: unknown) => {
      if (isUnreadable(error)) return true;
      throw error;
    },
  );
}

type List<O extends PageOptions, T> = (options: O) => Promise<Page<T>>;

/** A list without the items that `isHidden` names. */
function hiding<O extends PageOptions, T>(list: List<O, T>, isHidden: (item: T) => Promise<boolean>): List<O, T> {
  return async (options) => {
    const page = await list(options);
    const hidden = await Promise.all(page.items.map(isHidden));
    return { ...page, items: page.items.filter((_, i) => !hidden[i]) };
  };
}

/** A position in two lists that are read one after the other: which of the two, and its cursor, empty for the beginning. */
type Place = readonly [list: number, cursor: string];

/** Two lists, one after the other; a page never holds items of both. */
async function bothPages<O extends PageOptions, T>(
  options: O,
  lists: readonly (List<O, T> | undefined)[],
): Promise<Page<T>> {
  const { after } = checkPage(options, ['number', 'string']);
  const unreadable: Unreadable[] = [];
  const found = await firstItems(options, lists, { from: after ?? [0, ''], unreadable });
  const more = found && (await firstItems(options, lists, { from: found.next, unreadable: [] }));
  return {
    items: found?.items ?? [],
    ...(more && { nextCursor: encodeCursor(found.next) }),
    ...(unreadable.length > 0 && { unreadable }),
  };
}

/** The first page from a place on that has items. */
async function firstItems<O extends PageOptions, T>(
  options: O,
  lists: readonly (List<O, T> | undefined)[],
  { from: [start, startCursor], unreadable }: { from: Place; unreadable: Unreadable[] },
): Promise<{ items: T[]; next: Place } | undefined> {
  const { cursor: _, ...rest } = options;
  for (let index = start, cursor = startCursor; index < lists.length;) {
    const page = await lists[index]?.({ ...rest, ...(cursor !== '' && { cursor }) } as O);
    unreadable.push(...(page?.unreadable ?? []));
    cursor = page?.nextCursor ?? '';
    if (cursor === '') index++;
    if (page && page.items.length > 0) return { items: page.items, next: [index, cursor] };
  }
  return undefined;
}
