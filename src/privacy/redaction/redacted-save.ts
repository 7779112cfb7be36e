import type { GenkitError } from 'genkit';
import type { SessionSnapshotInput, SessionState, SnapshotMutator } from 'genkit/beta';
import { logWarning } from '../../errors.ts';
import { findFault, isPlainObject } from '../../json/fault.ts';
import { copyJson } from '../../json/value.ts';
import { isWaiting } from '../../session/tool-requests.ts';
import { reserveSnapshotId } from '../../snapshot/ids.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import type { SaveSnapshotOptions, ScopeChange, ScopeRecord, SessionSnapshot } from '../../store/contract.ts';
import { checkDetails } from '../../store/list/session-summary.ts';
import { isGeneratedInSnapshot } from './generated-texts.ts';
import { patchToOriginal } from './originals.ts';
import type { InnerStore, RedactedSessions } from './redacted-sessions.ts';
import { AsyncWorkNeeded, retryWhenReady, type Redaction } from './redaction.ts';
import type { Seal } from './seals.ts';
import {
  applyOpened,
  copyParts,
  joinParts,
  partsOf,
  type SearchedParts,
  type RedactedSnapshot,
} from './snapshot-parts.ts';

/** A copy of the state that the mutator returned last. */
interface LastState {
  readonly base: RedactedSnapshot | undefined;
  readonly whole: SessionState | undefined;
  /** Set when all of the state is searched. */
  redacted?: SearchedParts['state'];
}

/** One save: redacts the result of the mutator, and seals the originals that are still needed (see `Seals`). */
export class RedactedSave<S> {
  /** The state that the mutator returned last, and the snapshot that is stored for it. */
  given: object | undefined;
  stored: RedactedSnapshot | undefined;
  readonly #sessions: RedactedSessions;
  readonly #snapshotId: string | undefined;
  /** The id of the snapshot if the mutator's result has none. */
  readonly #ownId: string;
  readonly #mutator: SnapshotMutator<S>;
  readonly #options: SaveSnapshotOptions;
  readonly #inState: Redaction;
  readonly #beside: Redaction;
  /** The session of the mutator's last result. */
  #sessionId: string | undefined;
  /** The snapshot that the mutator's last result replaces. */
  #current: RedactedSnapshot | undefined;
  #last: LastState | undefined;
  #hasReset = false;
  /** The seal for the mutator's last result. */
  #seal: Seal | undefined;
  /** The seals of the snapshots that the mutator got, by key. */
  readonly #opened = new Map<string, Seal | undefined>();

  constructor(
    sessions: RedactedSessions,
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    options: SaveSnapshotOptions,
  ) {
    this.#sessions = sessions;
    this.#snapshotId = snapshotId;
    this.#ownId = snapshotId ?? reserveSnapshotId();
    this.#mutator = mutator;
    this.#options = options;
    const session = {
      context: options.context,
      sessionId: () => this.#sessionId,
      ifSnapshot: () => this.#ifSnapshot,
    };
    this.#inState = sessions.redaction(session, { except: sessions.except });
    this.#beside = sessions.redaction(session, { isGenerated: isGeneratedInSnapshot });
  }

  /** The id of the saved snapshot; `null` when the mutator skipped the save. */
  async run(): Promise<string | null> {
    const { session, scopes = [] } = this.#options;
    await this.#sessions.assertPlain(this.#beside, { 'id of the owner': checkDetails(session)?.ownerId });
    for (const { id } of scopes) await this.#sessions.assertPlain(this.#beside, { ...id, scope: undefined });
    let savedId: string | null = null;
    try {
      savedId = await this.#save();
    } catch (error) {
      const { status = '' } = (error ?? {}) as Partial<GenkitError>;
      if (REFUSALS.has(status)) await this.#removeUnused();
      if (status === 'ABORTED') await this.#forgetUnsaved();
      throw error;
    }
    if (savedId === null) await this.#removeUnused();
    else if (this.stored) await this.#finish({ ...this.stored, snapshotId: savedId });
    return savedId;
  }

  async #save(): Promise<string | null> {
    const snapshotId = this.#snapshotId;
    const store = this.#sessions.store as unknown as InnerStore<S>;
    const isNew = this.#sessions.known(snapshotId, this.#options) === undefined;
    // Searches a new snapshot before the store reads anything; the real call reports the errors. A cached snapshot is not given to the
    // mutator: it may be out of date, and a mutator may wrongly conclude from it that another process owns the snapshot.
    if (isNew) await retryWhenReady(async () => this.#redactAnswer(undefined, { inStore: false })).catch(() => {});
    const inner = { ...this.#options, ...(await this.#redactOptions()) };
    const saver = (current: SessionSnapshot<S> | undefined) =>
      this.#redactAnswer(current) as SessionSnapshotInput<S> | null;
    return retryWhenReady(() => store.saveSnapshot(snapshotId, saver, inner));
  }

  /** If this snapshot no longer exists, the session was deleted. */
  get #ifSnapshot(): string | undefined {
    return this.#options.ifSnapshot ?? this.#current?.snapshotId;
  }

  /** The save's session details and changes of records, redacted. */
  async #redactOptions(): Promise<SaveSnapshotOptions> {
    const { session, scopes } = this.#options;
    const { title, agent } = session ?? {};
    const texts = { ...(title !== undefined && { title }), ...(agent !== undefined && { agent }) };
    const shared = scopes && this.#sessions.sharedRedaction();
    return {
      ...(session && { session: { ...session, ...(await this.#beside.redact(undefined, texts)) } }),
      ...(shared && {
        scopes: scopes.map(({ id, change }) => ({ id, change: (record) => redactRecord(shared, record, change) })),
      }),
    };
  }

  /**
   * Runs the mutator. Returns the snapshot to store for its result.
   *
   * @throws AsyncWorkNeeded
   */
  #redactAnswer(current: RedactedSnapshot | undefined, options?: { inStore: boolean }): SessionSnapshotInput | null {
    this.stored = undefined;
    this.#current = current;
    const opened = current && this.#openedFor(current);
    const seen = current && (applyOpened(current, opened?.patch) as SessionSnapshot<S>);
    const answer = this.#mutator(seen) as SessionSnapshotInput | null;
    // If it is not a snapshot, the store refuses it.
    if (!isSnapshotLike(answer)) return answer;
    const snapshot = { ...answer, snapshotId: answer.snapshotId ?? this.#ownId } as SessionSnapshot;
    const base = current ?? this.#sessions.known(answer.parentId, this.#options);
    const known = this.#last?.base === base ? this.#last : undefined;
    const parts = copyParts(snapshot, known?.whole ?? base?.state);
    // Nearly all mutators return the same state each time they run, so it is searched once.
    const last: LastState = known && known.whole === parts.whole ? known : { base, whole: parts.whole };
    this.#last = last;
    const before = base && partsOf(base);
    this.#setSession(sessionOf(snapshot), !current && answer.parentId === undefined);
    this.#requirePlainIds(parts);
    const redacted: SearchedParts = {
      beside: this.#beside.apply(before?.beside, parts.beside, options),
      state: (last.redacted ??= this.#inState.apply(before?.state, parts.state, options)),
    };
    const sealed = this.#sealFor(redacted, parts, opened);
    this.given = answer.state;
    this.stored = { ...joinParts(parts, redacted), ...(sealed !== undefined && { sealed }) };
    return this.stored;
  }

  #setSession(sessionId: string | undefined, isRoot: boolean): void {
    this.#sessionId = sessionId;
    if (!isRoot || this.#hasReset || sessionId === undefined) return;
    this.#hasReset = true;
    this.#sessions.resetSession(sessionId, this.#options);
  }

  /** @throws AsyncWorkNeeded */
  #requirePlainIds({ plain, stateSessionId }: ReturnType<typeof copyParts>): void {
    const { snapshotId, sessionId, parentId } = plain;
    const ids = { snapshotId, sessionId, parentId, 'sessionId of the state': stateSessionId };
    if (this.#sessions.arePlain(Object.values(ids))) return;
    throw new AsyncWorkNeeded(() => this.#sessions.assertPlain(this.#beside, ids));
  }

  /**
   * The seal of the snapshot that the mutator gets.
   *
   * @throws AsyncWorkNeeded
   */
  #openedFor(current: RedactedSnapshot): Seal | undefined {
    const { sealed } = current;
    if (sealed === undefined) return undefined;
    if (!this.#opened.has(sealed)) {
      throw new AsyncWorkNeeded(
        async () => void this.#opened.set(sealed, await this.#sessions.openSeal(current, this.#options)),
      );
    }
    return this.#opened.get(sealed);
  }

  /**
   * The key of the snapshot's seal; `undefined` if it needs none.
   *
   * @throws AsyncWorkNeeded
   */
  #sealFor(
    redacted: SearchedParts,
    { plain, beside, state }: ReturnType<typeof copyParts>,
    opened: Seal | undefined,
  ): string | undefined {
    const sessionId = this.#sessionId;
    if (this.#sessions.settings.beforeModel || sessionId === undefined) return undefined;
    const messages = redacted.state.messages ?? [];
    if (plain.status !== 'pending' && !isWaiting(messages.at(-1))) return undefined;
    // After the end of a turn, only its waiting tool requests need their originals.
    const needed: SearchedParts =
      plain.status === 'pending'
        ? { beside, state }
        : { ...redacted, state: { ...redacted.state, messages: [...messages.slice(0, -1), state.messages!.at(-1)!] } };
    const patch = patchToOriginal(redacted, needed);
    if (patch.length === 0) return undefined;
    const text = JSON.stringify(patch);
    for (const seal of [opened, this.#seal]) if (seal && JSON.stringify(seal.patch) === text) return seal.key;
    throw new AsyncWorkNeeded(async () => {
      const { context } = this.#options;
      const unused = this.#seal;
      const owner = { sessionId, snapshotId: plain.snapshotId, context, ifSnapshot: this.#ifSnapshot };
      this.#seal = await this.#sessions.seals.write(owner, patch);
      if (unused) await this.#removeSeals([unused.key]);
    });
  }

  async #finish(stored: RedactedSnapshot): Promise<void> {
    this.#sessions.remember(stored, this.#options);
    if (this.#sessionId !== undefined) this.#sessions.noteSaved(this.#sessionId, this.#options);
    const before = this.#current;
    const ended = [before?.sealed, ...(before ? [] : await this.#endedWaits(stored)), this.#seal?.key];
    await this.#removeSeals(ended.filter((key) => key !== undefined && key !== stored.sealed) as string[]);
  }

  async #removeUnused(): Promise<void> {
    if (this.#seal) await this.#removeSeals([this.#seal.key]);
  }

  /** Removes the numbers of a session whose first save was refused, for example because its user was erased meanwhile. */
  async #forgetUnsaved(): Promise<void> {
    const sessionId = this.#sessionId;
    if (sessionId === undefined || this.#current) return;
    await this.#sessions.forgetUnsaved({ sessionId, context: this.#options.context }).catch((error: unknown) => {
      logWarning('The numbers of a session that was not saved could not be removed; prune removes them.', error);
    });
  }

  /** The seals of the tool requests whose wait this turn has ended. */
  async #endedWaits({ status, parentId, waitingSince = [] }: RedactedSnapshot): Promise<string[]> {
    if (status !== 'completed' || parentId === undefined) return [];
    const parent = await this.#sessions.find(parentId, this.#options);
    if (parent?.status !== 'completed' || parent.sealed === undefined) return [];
    const origins = (parent.waitingSince ?? []).filter((id) => id !== parentId);
    if ([...origins, parentId].some((id) => waitingSince.includes(id))) return [];
    const waited = [parent, ...(await Promise.all(origins.map((id) => this.#sessions.find(id, this.#options))))];
    return waited.flatMap((snapshot) => snapshot?.sealed ?? []);
  }

  async #removeSeals(keys: readonly string[]): Promise<void> {
    const sessionId = this.#sessionId;
    if (sessionId === undefined) return;
    const { context } = this.#options;
    for (const key of new Set(keys)) await this.#sessions.seals.remove({ sessionId, context }, key);
  }
}

/** After these errors nothing is stored. After any other error the snapshot may be stored, so its seal stays. */
const REFUSALS: ReadonlySet<string> = new Set(['ABORTED', 'FAILED_PRECONDITION', 'INVALID_ARGUMENT']);

function isSnapshotLike(answer: unknown): answer is SessionSnapshotInput {
  if (!isPlainObject(answer)) return false;
  const { state } = answer as { state?: unknown };
  return state === undefined || isPlainObject(state);
}

function redactRecord(
  redaction: Redaction,
  record: ScopeRecord,
  change: ScopeChange['change'],
): ScopeRecord | undefined {
  const before = copyJson(record);
  const answer = change(record);
  if (!isPlainObject(answer) || findFault(answer)) return answer;
  return redaction.apply({ record: before }, { record: copyJson(answer) }).record;
}
