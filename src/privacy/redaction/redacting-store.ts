import type { GenerateRequest } from 'genkit';
import type { SessionState, SnapshotMutator } from 'genkit/beta';
import { failedPrecondition, invalidArgument, logError } from '../../errors.ts';
import { thaw } from '../../json/immutable.ts';
import { copyJson } from '../../json/value.ts';
import { handOut } from '../../snapshot/hand-out.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import {
  keepsRecords,
  canCheck,
  type ChangingStore,
  type CheckOptions,
  type CheckResult,
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
  type SessionStoreOptions,
  type SessionSummary,
  type SnapshotLookup,
  type SnapshotMetadata,
  type SnapshotStore,
  type StoreCapabilities,
  type TurnPlace,
  type WriteRecordOptions,
} from '../../store/contract.ts';
import { assertFunction } from '../../store/check-lookup.ts';
import { checkScopeChanges } from '../../store/records/record-scopes.ts';
import { checkRecordWrite } from '../../store/records/session-records.ts';
import { generatedInRecord } from './generated-texts.ts';
import { checkRedacting, type RedactingOptions, type RedactingSettings } from './options.ts';
import { RedactedSave } from './redacted-save.ts';
import { RedactedSessions, type InnerStore } from './redacted-sessions.ts';
import type { Redaction } from './redaction.ts';
import { PRIVACY_RECORDS } from './session-numbers.ts';
import { applyOpened, withoutSeal, type RedactedSnapshot } from './snapshot-parts.ts';

/**
 * Wraps a store so that it keeps no value that a rule finds. A placeholder such as `[EMAIL_1]` is stored instead, the same for the same
 * value of a session. This covers snapshots of every status with all their members, the records of sessions, users and apps, and titles.
 *
 * - The running turn works with the originals, later turns with the placeholders. With `beforeModel` the running model gets them, too.
 * - Without `beforeModel`, the originals that a background run or a tool waiting for approval still needs are sealed: encrypted with
 *   `secret` and kept as a record of the session. `getSnapshot` puts them back; they are removed when the run or the wait has ended.
 * - Ids are stored unchanged. An id in which a rule finds something is refused with `INVALID_ARGUMENT`.
 * - Media and `data:` URLs are stored as they are.
 * - Data that the store held before stays as it is: copy its sessions to an empty store with `copySessions(from, redacting(to, ...))`.
 *
 * `close()` closes `store`.
 *
 * @param store A store with session records, for example one of this package.
 * @throws `INVALID_ARGUMENT` for a store without session records, and for missing or wrong options. A save throws `UNAVAILABLE` and writes
 *   nothing when a rule throws or takes too long (see `onFailure`).
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
      'redacting needs a store that keeps session records (capabilities.records), as the session stores of this package do. Memories are redacted by the option redact of memoryManager.',
    );
  }
  return new RedactingStore<S>(store as InnerStore<S>, settings);
}

class RedactingStore<S> implements SnapshotStore<S>, ScopeStore, RecordStore, ChangingStore {
  readonly capabilities: Readonly<StoreCapabilities>;
  readonly modelRequest?: NonNullable<ChangingStore['modelRequest']>;
  readonly deleteSessions?: NonNullable<SnapshotStore['deleteSessions']>;
  readonly #store: InnerStore<S>;
  readonly #sessions: RedactedSessions;
  /** Stored states by the states that callers gave. */
  readonly #storedStates = new WeakMap<object, object>();

  constructor(store: InnerStore<S>, settings: RedactingSettings) {
    this.#store = store;
    this.#sessions = new RedactedSessions(store as unknown as InnerStore<never>, settings);
    this.capabilities = store.capabilities;
    if (store.deleteSessions) {
      this.deleteSessions = (options) => {
        this.#sessions.forget();
        return store.deleteSessions!(options);
      };
    }
    if (settings.beforeModel) this.modelRequest = (request, session) => this.#redactRequest(request, session);
  }

  async getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined> {
    const stored = (await this.#store.getSnapshot({ ...lookup, frozen: true })) as RedactedSnapshot | undefined;
    if (!stored) return undefined;
    this.#sessions.remember(stored, lookup);
    const { state, ...metadata } = await this.#open(stored, lookup);
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
    const save = new RedactedSave(this.#sessions, snapshotId, mutator, options);
    const savedId = await save.run();
    if (save.given && save.stored?.state) this.#storedStates.set(save.given, save.stored.state);
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
        const stored = snapshot as RedactedSnapshot;
        if (!opening && stored.sealed === undefined) return notify(stored);
        // Keeps the order: a snapshot after a sealed one waits until that one is opened.
        const next = Promise.resolve(opening)
          .then(async () => notify(await this.#open(stored, options)))
          .catch((error: unknown) => logError('A watched snapshot could not be opened.', error))
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

  async deleteSession(options: Parameters<SnapshotStore['deleteSession']>[0]): Promise<DeleteResult> {
    // A new session of the same id gets new numbers.
    if (options?.sessionId !== undefined) this.#sessions.forget(options, options.sessionId);
    // Leaves out the count of records: it includes the numbers and seals, which callers never see.
    const { records: _, ...counts } = await this.#store.deleteSession(options);
    return counts;
  }

  prune(policy: PrunePolicy, options?: Parameters<SnapshotStore['prune']>[1]): Promise<PruneResult> {
    this.#sessions.forget(options, options?.sessionId);
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
    const { sessionId, kind, key, value, ifSnapshot } = checkRecordWrite(options);
    if (kind === PRIVACY_RECORDS) {
      throw invalidArgument(
        `Session records of the kind '${PRIVACY_RECORDS}' belong to the redacting store. Use another kind.`,
      );
    }
    const session = { context: options.context, sessionId: () => sessionId, ifSnapshot: () => ifSnapshot };
    const isGenerated = generatedInRecord(kind);
    const redaction = this.#sessions.redaction(session, { ...(isGenerated && { isGenerated }) });
    await this.#sessions.assertPlain(redaction, { sessionId, kind, key });
    const redacted = value === undefined ? undefined : (await redaction.redact(undefined, { value })).value;
    return this.#store.writeRecord({ ...options, value: redacted });
  }

  async check(options?: CheckOptions): Promise<CheckResult> {
    if (canCheck(this.#store)) return this.#store.check(options);
    throw failedPrecondition('The store inside of redacting has no method check (capabilities.check).');
  }

  async close(): Promise<void> {
    this.#sessions.clear();
    await this.#store.close();
  }

  storedState<T>(state: SessionState<T>): SessionState<T> {
    return (this.#storedStates.get(state) as SessionState<T> | undefined) ?? state;
  }

  /** The snapshot as callers see it. */
  async #open(stored: RedactedSnapshot, options: SessionStoreOptions): Promise<SessionSnapshot> {
    return applyOpened(stored, (await this.#sessions.openSeal(stored, options))?.patch);
  }

  redactText(text: string): Promise<string> {
    return this.#sessions.sharedRedaction().redact(undefined, text);
  }

  async redactCustom({ messages = [], custom }: SessionState, turn: TurnPlace): Promise<unknown> {
    const redaction = await this.#redactionOf(turn);
    const base = this.#sessions.known(turn.parentId, turn)?.state;
    // The new messages come first, as in a save, so that they get the same numbers.
    const state = copyJson({ messages: messages.slice(base?.messages?.length ?? 0), custom });
    return (await redaction.redact(base && { custom: base.custom }, state)).custom;
  }

  async #redactRequest(request: GenerateRequest, turn: TurnPlace): Promise<GenerateRequest> {
    const redaction = await this.#redactionOf(turn);
    const { messages, docs } = request;
    const texts = copyJson({ messages, ...(docs && { docs }) });
    // Not frozen, because a model may change its request.
    return { ...request, ...thaw(await redaction.redact(undefined, texts)) };
  }

  async #redactionOf({ sessionId, parentId, context }: TurnPlace): Promise<Redaction> {
    const parent = parentId === undefined ? undefined : await this.#sessions.find(parentId, { context });
    // The first turn of a session may continue from a snapshot of another one.
    const isElsewhere = parent !== undefined && sessionOf(parent) !== sessionId;
    const session = {
      context,
      sessionId: () => sessionId,
      ifSnapshot: () => (isElsewhere ? undefined : parentId),
    };
    return this.#sessions.redaction(session, { except: this.#sessions.except });
  }
}
