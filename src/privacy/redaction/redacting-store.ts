import { randomUUID } from 'node:crypto';
import type { GenerateRequest } from 'genkit';
import type { SessionSnapshotInput, SessionState, SnapshotMutator } from 'genkit/beta';
import { logger } from 'genkit/logging';
import { describeThrown, invalidArgument } from '../../errors.ts';
import { findFault, isPlain } from '../../json/fault.ts';
import { thaw } from '../../json/immutable.ts';
import { parsePointer } from '../../json/pointer.ts';
import { copyJson } from '../../json/value.ts';
import { isWaiting } from '../../session/tool-requests.ts';
import { handOut } from '../../snapshot/hand-out.ts';
import { reserveSnapshotId } from '../../snapshot/ids.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import {
  keepsRecords,
  type ChangingStore,
  type DeleteResult,
  type ListSessionsOptions,
  type Page,
  type PageOptions,
  type PrunePolicy,
  type PruneResult,
  type ReadRecordsOptions,
  type RecordStore,
  type SaveSnapshotOptions,
  type ScopeChange,
  type ScopeId,
  type ScopeRecord,
  type ScopeStore,
  type SessionRecord,
  type SessionSnapshot,
  type SessionStoreOptions,
  type SessionSummary,
  type SnapshotLookup,
  type SnapshotMetadata,
  type SnapshotStore,
  type StoreCapabilities,
  type WriteRecordOptions,
} from '../../store/contract.ts';
import { assertFunction } from '../../store/check-lookup.ts';
import { LruCache } from '../../store/parts/lru-cache.ts';
import { checkScopeChanges } from '../../store/records/scopes.ts';
import { checkRecordWrite } from '../../store/records/session-records.ts';
import { checkDetails } from '../../store/list/session-summary.ts';
import { isMachineMade } from './machine-made.ts';
import { checkRedacting, type RedactingOptions, type RedactingSettings } from './options.ts';
import { patchToOriginal } from './originals.ts';
import { NotYet, Redaction, whenReady, type Path, type RedactionOptions } from './redaction.ts';
import { Seals, type Seal } from './seals.ts';
import { openSessionNumbers, PRIVACY_RECORDS, SharedNumbering } from './session-numbers.ts';
import { applySeal, copyParts, joinParts, partsOf, type SearchedParts, type StoredSnapshot } from './snapshot-parts.ts';

/** A store that keeps session records. */
type InnerStore<S> = SnapshotStore<S> & ScopeStore & RecordStore;

/** How many snapshots are remembered, so that the next turn of their sessions searches only what it adds. */
const MAX_KNOWN = 256;
/** Of how many sessions the parts that were searched lately are remembered. */
const MAX_MEMOS = 256;
const MAX_MEMO_PARTS = 10_000;
const MAX_PLAIN_IDS = 10_000;

/**
 * Wraps a store so that it keeps nothing that a rule finds: a placeholder such as `[EMAIL_1]` is stored in its place, the same for the same value
 * of a session. That holds for snapshots of every status with all their members, for the records of sessions, users and apps, and for titles.
 *
 * - The running turn works with the originals. Later turns read the placeholders, unless `beforeModel` gives them to the running turn as well.
 * - What a background run still needs, and the input of a tool that waits for approval, is sealed: encrypted with `secret`, kept as a record of the
 *   session, put back by `getSnapshot`, and removed when the run or the wait has ended.
 * - Ids are stored as they are. One in which a rule finds something is refused with `INVALID_ARGUMENT`.
 * - Media and `data:` URLs are stored as they are.
 * - What the store held before is not changed: copy its sessions to an empty store with `copySessions(from, redacting(to, ...))`.
 *
 * `close()` closes `store`.
 *
 * @param store One that keeps session records, as those of this package do.
 * @throws `INVALID_ARGUMENT` for a store without session records, and for options that are missing or wrong. A save throws `UNAVAILABLE` when a rule
 *   throws or takes too long, and nothing is written.
 * @example
 * import { InMemorySessionStore } from 'genkitx-agents';
 * import { piiRules, redacting } from 'genkitx-agents/privacy';
 * const store = redacting(new InMemorySessionStore(), { rules: piiRules(), secret: process.env['PRIVACY_SECRET']! });
 */
export function redacting<S = unknown>(
  store: SnapshotStore<S>,
  options: RedactingOptions,
): SnapshotStore<S> & ScopeStore & RecordStore {
  const settings = checkRedacting('redacting', options);
  if (typeof (store as Partial<SnapshotStore<S>> | undefined)?.getSnapshot !== 'function' || !keepsRecords(store)) {
    throw invalidArgument(
      'redacting needs a store that keeps session records (capabilities.records), as those of this package do.',
    );
  }
  return new RedactingStore<S>(store as InnerStore<S>, settings);
}

class RedactingStore<S> implements SnapshotStore<S>, ScopeStore, RecordStore, ChangingStore {
  readonly capabilities: Readonly<StoreCapabilities>;
  readonly modelRequest?: NonNullable<ChangingStore['modelRequest']>;
  readonly deleteSessions?: NonNullable<SnapshotStore['deleteSessions']>;
  readonly #store: InnerStore<S>;
  readonly #settings: RedactingSettings;
  readonly #except: readonly Path[];
  readonly #seals: Seals;
  /** Stored states by the states that callers gave. */
  readonly #storedStates = new WeakMap<object, object>();
  /** Messages and artifacts as they are stored, frozen. */
  readonly #stored = new WeakSet<object>();
  /** Snapshots as they are stored, by caller and id. */
  readonly #known = new LruCache<StoredSnapshot>(MAX_KNOWN);
  /** Redacted parts, by caller and session. */
  readonly #memos = new LruCache<Map<string, unknown>>(MAX_MEMOS);
  /** Ids in which the rules found nothing. */
  readonly #plainIds = new Set<string>();

  constructor(store: InnerStore<S>, settings: RedactingSettings) {
    this.#store = store;
    this.#settings = settings;
    this.#except = settings.except.map(parsePointer);
    this.#seals = new Seals(store, settings.secrets);
    this.capabilities = store.capabilities;
    if (store.deleteSessions) {
      this.deleteSessions = (options) => {
        this.#memos.clear();
        return store.deleteSessions!(options);
      };
    }
    if (settings.beforeModel) this.modelRequest = (request, session) => this.#redactRequest(request, session);
  }

  async getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined> {
    const stored = (await this.#store.getSnapshot({ ...lookup, frozen: true })) as StoredSnapshot | undefined;
    if (!stored) return undefined;
    this.#remember(stored, lookup);
    const { state, ...metadata } = applyOpened(stored, await this.#openSeal(stored, lookup));
    return handOut<S>(metadata, { frozen: lookup.frozen, ...(state !== undefined && { state: () => state }) });
  }

  async getSnapshotMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> {
    const metadata = await this.#store.getSnapshotMetadata(lookup);
    return metadata && withoutSeal(metadata);
  }

  async saveSnapshot(
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    options: SaveSnapshotOptions = {},
  ): Promise<string | null> {
    assertFunction(mutator, 'mutator');
    checkScopeChanges(options.scopes);
    const save = new Save(options, snapshotId ?? reserveSnapshotId());
    const scope = { context: options.context, sessionId: () => save.sessionId };
    save.inState = this.#redaction(scope, { except: this.#except });
    save.beside = this.#redaction(scope, { isMachineMade });
    await this.#assertPlain(save.beside, { 'id of the owner': checkDetails(options.session)?.ownerId });
    for (const { id } of options.scopes ?? []) await this.#assertPlain(save.beside, { ...id, scope: undefined });
    const redact = (current: StoredSnapshot | undefined) => this.#redactAnswer(save, mutator, current);
    const isNew = snapshotId === undefined || !this.#known.get(keyOf(options, snapshotId));
    // A new snapshot is searched before the store reads anything. The real call reports what is wrong. A mutator never sees a snapshot that may
    // be out of date: it may conclude from it for good that another process owns the snapshot.
    if (isNew) await whenReady(async () => redact(undefined)).catch(() => {});
    const inner = { ...options, ...(await this.#redactOptions(save.beside, options)) };
    const saver = (current: SessionSnapshot<S> | undefined) => redact(current) as SessionSnapshotInput<S> | null;
    const savedId = await whenReady(() => this.#store.saveSnapshot(snapshotId, saver, inner));
    // After an error it is not known whether the snapshot was saved, so the seal stays.
    if (savedId !== null && save.stored) await this.#afterSave(save, { ...save.stored, snapshotId: savedId });
    else if (save.seal) await this.#removeSeals(save, [save.seal.key]);
    return savedId;
  }

  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
    options: SessionStoreOptions = {},
  ): () => void {
    assertFunction(callback, 'callback');
    let hasEnded = false;
    let opening: Promise<void> | undefined;
    const notify = (snapshot: SessionSnapshot): void => {
      if (!hasEnded) callback(snapshot as SessionSnapshot<S>);
    };
    const end = this.#store.onSnapshotStateChange(
      snapshotId,
      (snapshot) => {
        const stored = snapshot as StoredSnapshot;
        if (!opening && stored.sealed === undefined) return notify(stored);
        // In order: a snapshot that comes after a sealed one waits for it.
        const next = Promise.resolve(opening)
          .then(async () => notify(applyOpened(stored, await this.#openSeal(stored, options))))
          .catch((error: unknown) => {
            logger.error(`A watched snapshot could not be opened. ${describeThrown(error)}`);
          })
          .finally(() => {
            if (opening === next) opening = undefined;
          });
        opening = next;
      },
      options,
    );
    return () => {
      hasEnded = true;
      end();
    };
  }

  async listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>> {
    const page = await this.#store.listSnapshots(options);
    return { ...page, items: page.items.map(withoutSeal) };
  }

  listSessions(options?: ListSessionsOptions): Promise<Page<SessionSummary>> {
    return this.#store.listSessions(options);
  }

  deleteSession(options: Parameters<SnapshotStore['deleteSession']>[0]): Promise<DeleteResult> {
    // A session that begins anew under the id begins its numbers anew.
    this.#memos.delete(keyOf(options, options?.sessionId));
    return this.#store.deleteSession(options);
  }

  prune(policy: PrunePolicy, options?: Parameters<SnapshotStore['prune']>[1]): Promise<PruneResult> {
    this.#memos.clear();
    return this.#store.prune(policy, options);
  }

  readScopes(options: SessionStoreOptions & { scopes: readonly ScopeId[] }): Promise<ScopeRecord[]> {
    return this.#store.readScopes(options);
  }

  deleteScope(options: SessionStoreOptions & { scope: ScopeId }): Promise<boolean> {
    return this.#store.deleteScope(options);
  }

  listScopes(options?: PageOptions): Promise<Page<ScopeId>> {
    return this.#store.listScopes(options);
  }

  async readRecords(options: ReadRecordsOptions): Promise<SessionRecord[]> {
    const records = await this.#store.readRecords(options);
    return records.filter(({ kind }) => kind !== PRIVACY_RECORDS);
  }

  async writeRecord(options: WriteRecordOptions): Promise<string | null> {
    const { sessionId, kind, key, value } = checkRecordWrite(options);
    if (kind === PRIVACY_RECORDS) {
      throw invalidArgument(
        `Session records of the kind '${PRIVACY_RECORDS}' belong to the redacting store. Use another kind.`,
      );
    }
    const redaction = this.#redaction({ context: options.context, sessionId: () => sessionId }, { isMachineMade });
    await this.#assertPlain(redaction, { sessionId, kind, key });
    const redacted = value === undefined ? undefined : (await redaction.redact(undefined, { value })).value;
    return this.#store.writeRecord({ ...options, value: redacted });
  }

  async close(): Promise<void> {
    this.#known.clear();
    this.#memos.clear();
    this.#seals.clear();
    await this.#store.close();
  }

  storedState<T>(state: SessionState<T>): SessionState<T> {
    return (this.#storedStates.get(state) as SessionState<T> | undefined) ?? state;
  }

  async #redactRequest(
    request: GenerateRequest,
    { sessionId, context }: SessionStoreOptions & { sessionId: string },
  ): Promise<GenerateRequest> {
    const redaction = this.#redaction({ context, sessionId: () => sessionId }, { except: this.#except });
    const { messages, docs } = request;
    const texts = copyJson({ messages, ...(docs && { docs }) });
    // A model may change what it gets.
    return { ...request, ...thaw(await redaction.redact(undefined, texts)) };
  }

  /** A redaction of what belongs to a session, whose id may be known only later. */
  #redaction(
    { context, sessionId }: SessionStoreOptions & { sessionId: () => string | undefined },
    options: Pick<RedactionOptions, 'except' | 'isMachineMade'>,
  ): Redaction {
    const [secret] = this.#settings.secrets;
    const own = new Map<string, unknown>();
    return new Redaction(this.#settings, {
      ...options,
      isStored: (value) => this.#stored.has(value),
      memo: () => {
        const id = sessionId();
        return id === undefined ? own : this.#memoOf(keyOf({ context }, id));
      },
      openNumbers: async () => {
        const id = sessionId();
        if (id === undefined) return { numbering: new SharedNumbering(secret!), save: async () => {} };
        return openSessionNumbers(this.#store, secret!, { sessionId: id, context });
      },
    });
  }

  #memoOf(key: string): Map<string, unknown> {
    const memo = this.#memos.get(key) ?? new Map<string, unknown>();
    if (memo.size > MAX_MEMO_PARTS) memo.clear();
    this.#memos.set(key, memo, 1);
    return memo;
  }

  async #assertPlain(redaction: Redaction, ids: Readonly<Record<string, string | undefined>>): Promise<void> {
    const unknown = Object.entries(ids).filter(([, id]) => id !== undefined && !this.#plainIds.has(id));
    if (unknown.length === 0) return;
    await redaction.assertPlainIds(Object.fromEntries(unknown));
    if (this.#plainIds.size > MAX_PLAIN_IDS) this.#plainIds.clear();
    for (const [, id] of unknown) this.#plainIds.add(id!);
  }

  /** The details and the changes of records that a save has besides its snapshot. */
  async #redactOptions(beside: Redaction, { session, scopes }: SaveSnapshotOptions): Promise<SaveSnapshotOptions> {
    const { title, agent } = session ?? {};
    const texts = { ...(title !== undefined && { title }), ...(agent !== undefined && { agent }) };
    const numbering = new SharedNumbering(this.#settings.secrets[0]!);
    const shared = new Redaction(this.#settings, { openNumbers: async () => ({ numbering, save: async () => {} }) });
    return {
      ...(session && { session: { ...session, ...(await beside.redact(undefined, texts)) } }),
      ...(scopes && {
        scopes: scopes.map(({ id, change }) => ({ id, change: (record) => redactRecord(shared, record, change) })),
      }),
    };
  }

  /**
   * The snapshot to store for what the mutator answers.
   *
   * @throws NotYet
   */
  #redactAnswer(
    save: Save,
    mutator: SnapshotMutator<S>,
    current: StoredSnapshot | undefined,
  ): SessionSnapshotInput | null {
    const opened = current && this.#openedFor(save, current);
    const seen = current && (applyOpened(current, opened) as SessionSnapshot<S>);
    const answer = mutator(seen) as SessionSnapshotInput | null;
    save.stored = undefined;
    // The store refuses what is no snapshot.
    if (!isSnapshotLike(answer)) return answer;
    const snapshot = { ...answer, snapshotId: answer.snapshotId ?? save.snapshotId } as SessionSnapshot;
    const parent = answer.parentId === undefined ? undefined : this.#known.get(keyOf(save.options, answer.parentId));
    const base = current ?? parent;
    const parts = copyParts(snapshot, base);
    const before = base && partsOf(base);
    save.sessionId = sessionOf(snapshot);
    const { snapshotId, sessionId, parentId } = parts.plain;
    const ids = { snapshotId, sessionId, parentId, 'sessionId of the state': parts.stateSessionId };
    if (Object.values(ids).some((id) => id !== undefined && !this.#plainIds.has(id))) {
      throw new NotYet(() => this.#assertPlain(save.beside, ids));
    }
    const redacted: SearchedParts = {
      beside: save.beside.apply(before?.beside, parts.beside),
      state: save.inState.apply(before?.state, parts.state),
    };
    const sealed = this.#sealFor(save, redacted, parts, opened);
    const stored = { ...joinParts(parts, redacted), ...(sealed !== undefined && { sealed }) } as StoredSnapshot;
    save.given = answer.state;
    save.stored = stored;
    save.before = current;
    return stored;
  }

  /**
   * What is sealed for the snapshot that a mutator is to see.
   *
   * @throws NotYet
   */
  #openedFor({ opened, options }: Save, current: StoredSnapshot): Seal | undefined {
    const { sealed } = current;
    if (sealed === undefined) return undefined;
    if (!opened.has(sealed)) {
      throw new NotYet(async () => void opened.set(sealed, await this.#openSeal(current, options)));
    }
    return opened.get(sealed);
  }

  /**
   * The key of what is sealed for the snapshot; `undefined` when nothing is.
   *
   * @throws NotYet
   */
  #sealFor(
    save: Save,
    redacted: SearchedParts,
    { plain, beside, state }: ReturnType<typeof copyParts>,
    opened: Seal | undefined,
  ): string | undefined {
    const { sessionId, options } = save;
    if (this.#settings.beforeModel || sessionId === undefined) return undefined;
    const messages = redacted.state.messages ?? [];
    if (plain.status !== 'pending' && !isWaiting(messages.at(-1))) return undefined;
    // Of a turn that has ended, only the tool requests that wait are needed.
    const needed: SearchedParts =
      plain.status === 'pending'
        ? { beside, state }
        : { ...redacted, state: { ...redacted.state, messages: [...messages.slice(0, -1), state.messages!.at(-1)!] } };
    const patch = patchToOriginal(redacted, needed);
    if (patch.length === 0) return undefined;
    const text = JSON.stringify(patch);
    for (const seal of [opened, save.seal]) if (seal && JSON.stringify(seal.patch) === text) return seal.key;
    throw new NotYet(async () => {
      const unused = save.seal;
      save.seal = await this.#seals.write({ sessionId, snapshotId: plain.snapshotId, context: options.context }, patch);
      if (unused) await this.#removeSeals(save, [unused.key]);
    });
  }

  async #afterSave(save: Save, stored: StoredSnapshot): Promise<void> {
    this.#remember(stored, save.options);
    if (save.given && stored.state) this.#storedStates.set(save.given, stored.state);
    const ended = [save.before?.sealed, ...(save.before ? [] : await this.#endedWaits(save, stored)), save.seal?.key];
    await this.#removeSeals(save, ended.filter((key) => key !== undefined && key !== stored.sealed) as string[]);
  }

  /** The seals of the tool requests that waited until this turn. */
  async #endedWaits({ options }: Save, { status, parentId, waitingSince = [] }: StoredSnapshot): Promise<string[]> {
    if (status !== 'completed' || parentId === undefined) return [];
    const parent = await this.#find(parentId, options);
    if (parent?.status !== 'completed' || parent.sealed === undefined) return [];
    const origins = (parent.waitingSince ?? []).filter((id) => id !== parentId);
    if ([...origins, parentId].some((id) => waitingSince.includes(id))) return [];
    const waited = [parent, ...(await Promise.all(origins.map((id) => this.#find(id, options))))];
    return waited.flatMap((snapshot) => snapshot?.sealed ?? []);
  }

  async #find(snapshotId: string, { context }: SessionStoreOptions): Promise<StoredSnapshot | undefined> {
    const known = this.#known.get(keyOf({ context }, snapshotId));
    return known ?? (await this.#store.getSnapshotMetadata({ snapshotId, context }));
  }

  async #removeSeals({ sessionId, options: { context } }: Save, keys: readonly string[]): Promise<void> {
    if (sessionId === undefined) return;
    for (const key of new Set(keys)) await this.#seals.remove({ sessionId, context }, key);
  }

  async #openSeal(stored: StoredSnapshot, { context }: SessionStoreOptions): Promise<Seal | undefined> {
    const sessionId = sessionOf(stored);
    if (stored.sealed === undefined || sessionId === undefined) return undefined;
    return this.#seals.read({ sessionId, snapshotId: stored.snapshotId, context }, stored.sealed);
  }

  #remember(stored: StoredSnapshot, options: SessionStoreOptions): void {
    this.#known.set(keyOf(options, stored.snapshotId), stored, 1);
    for (const part of [...(stored.state?.messages ?? []), ...(stored.state?.artifacts ?? [])]) {
      if (Object.isFrozen(part)) this.#stored.add(part);
    }
  }
}

/** What a save needs to know until it is over. */
class Save {
  /** The session of the last answer. */
  sessionId: string | undefined;
  inState!: Redaction;
  beside!: Redaction;
  /** What was sealed for the last answer. */
  seal: Seal | undefined;
  /** What was sealed for snapshots that the mutator saw, by key. */
  readonly opened = new Map<string, Seal | undefined>();
  /** The state of the last answer, the snapshot that is stored for it, and the one that it replaces. */
  given: object | undefined;
  stored: StoredSnapshot | undefined;
  before: StoredSnapshot | undefined;

  constructor(
    readonly options: SaveSnapshotOptions,
    /** The id of a snapshot that the answer does not name. */
    readonly snapshotId: string,
  ) {}
}

const callers = new WeakMap<object, string>();

/** A key for what belongs to a caller: tenants may use the same ids, and are told apart by their contexts. */
function keyOf({ context }: SessionStoreOptions, id: string): string {
  return `${context === undefined ? '' : callerOf(context)} ${id}`;
}

function callerOf(context: object): string {
  const known = callers.get(context);
  if (known !== undefined) return known;
  let caller: string;
  try {
    caller = JSON.stringify(copyJson(context));
  } catch {
    // What is no JSON can't be compared.
    caller = randomUUID();
  }
  callers.set(context, caller);
  return caller;
}

function isSnapshotLike(answer: unknown): answer is SessionSnapshotInput {
  if (!isMembers(answer)) return false;
  const { state } = answer as { state?: unknown };
  return state === undefined || isMembers(state);
}

function isMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && isPlain(value);
}

function applyOpened(stored: StoredSnapshot, seal: Seal | undefined): SessionSnapshot {
  return seal ? applySeal(stored, seal.patch) : withoutSeal(stored);
}

function withoutSeal<T extends object>(snapshot: T): T {
  if (!('sealed' in snapshot)) return snapshot;
  const { sealed: _, ...others } = snapshot;
  return others as T;
}

function redactRecord(
  redaction: Redaction,
  record: ScopeRecord,
  change: ScopeChange['change'],
): ScopeRecord | undefined {
  const before = copyJson(record);
  const answer = change(record);
  if (!isMembers(answer) || findFault(answer)) return answer;
  return redaction.apply({ record: before }, { record: copyJson(answer) }).record;
}
