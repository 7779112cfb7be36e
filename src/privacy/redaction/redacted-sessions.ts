import { randomUUID } from 'node:crypto';
import { copyJson } from '../../json/value.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import type { RecordStore, ScopeStore, SessionStoreOptions, SnapshotStore } from '../../store/contract.ts';
import { LruCache } from '../../store/parts/lru-cache.ts';
import { parseExcept } from '../rules/redact-value.ts';
import { isRandomId } from './generated-texts.ts';
import type { RedactingSettings } from './options.ts';
import { Redaction, type Path, type RedactionOptions } from './redaction.ts';
import { Seals, type Seal } from './seals.ts';
import { openSessionNumbers, removeSessionNumbers, sharedNumbers, type RecordOwner } from './session-numbers.ts';
import type { RedactedSnapshot } from './snapshot-parts.ts';

/** A store that keeps session records. */
export type InnerStore<S = unknown> = SnapshotStore<S> & ScopeStore & RecordStore;

/** How many snapshots are cached, so that the next turn of their sessions searches only its additions. */
const MAX_KNOWN = 256;
/** For how many sessions redacted parts are cached. */
const MAX_MEMOS = 256;
const MAX_MEMO_PARTS = 10_000;
const MAX_PLAIN_TEXTS = 10_000;

/** The session of a redaction. Its members are functions, because a save learns its session from the mutator. */
export interface RedactedSession extends SessionStoreOptions {
  readonly sessionId: () => string | undefined;
  readonly ifSnapshot?: () => string | undefined;
}

/** The redacted parts of a session. */
interface Memo {
  readonly parts: Map<string, unknown>;
  /** Whether the store has a snapshot of the session. */
  isSaved: boolean;
}

/** Redacts for the sessions of a store, and caches the results. */
export class RedactedSessions {
  readonly store: InnerStore<never>;
  readonly settings: RedactingSettings;
  readonly seals: Seals;
  /** The paths in a state that are not redacted. */
  readonly except: readonly Path[];
  /** Snapshots as they are stored, by caller and id. */
  readonly #known = new LruCache<RedactedSnapshot>(MAX_KNOWN);
  /** By caller and session. */
  readonly #memos = new LruCache<Memo>(MAX_MEMOS);
  /** Ids and names of members in which the rules found nothing. */
  readonly #plainTexts = new Set<string>();

  constructor(store: InnerStore<never>, settings: RedactingSettings) {
    this.store = store;
    this.settings = settings;
    this.seals = new Seals(store, settings.secrets);
    this.except = settings.except.map(parseExcept);
  }

  /** The secret for new data. */
  get secret(): Uint8Array {
    return this.settings.secrets[0]!;
  }

  /** A redaction for the data of one session. */
  redaction(
    { context, sessionId, ifSnapshot }: RedactedSession,
    options: Pick<RedactionOptions, 'except' | 'isGenerated'>,
  ): Redaction {
    const own = new Map<string, unknown>();
    if (this.#plainTexts.size > MAX_PLAIN_TEXTS) this.#plainTexts.clear();
    return new Redaction(this.settings, {
      ...options,
      plainTexts: this.#plainTexts,
      memo: () => {
        const id = sessionId();
        return id === undefined ? own : this.#memoOf({ context }, id).parts;
      },
      openNumbers: async () => {
        const id = sessionId();
        if (id === undefined) return sharedNumbers(this.secret);
        return openSessionNumbers(this.store, this.settings.secrets, {
          sessionId: id,
          context,
          ifSnapshot: ifSnapshot?.(),
        });
      },
    });
  }

  /** A redaction for data that many sessions share. */
  sharedRedaction(): Redaction {
    return new Redaction(this.settings, { openNumbers: async () => sharedNumbers(this.secret) });
  }

  /** Whether each of the ids is random, or was searched without a finding. */
  arePlain(ids: readonly (string | undefined)[]): boolean {
    return ids.every((id) => id === undefined || this.#plainTexts.has(id) || isRandomId(id));
  }

  /** @throws `INVALID_ARGUMENT` when a rule finds something in an id. */
  async assertPlain(redaction: Redaction, ids: Readonly<Record<string, string | undefined>>): Promise<void> {
    const unknown = Object.entries(ids).filter(([, id]) => !this.arePlain([id]));
    if (unknown.length === 0) return;
    await redaction.assertPlainIds(Object.fromEntries(unknown));
    for (const [, id] of unknown) this.#plainTexts.add(id!);
  }

  remember(stored: RedactedSnapshot, options: SessionStoreOptions): void {
    this.#known.set(keyOf(options, stored.snapshotId), stored, 1);
  }

  /** The stored snapshot as this process last saw it. */
  known(snapshotId: string | undefined, options: SessionStoreOptions): RedactedSnapshot | undefined {
    return snapshotId === undefined ? undefined : this.#known.get(keyOf(options, snapshotId));
  }

  /** The cached snapshot, or its metadata from the store. */
  async find(snapshotId: string, { context }: SessionStoreOptions): Promise<RedactedSnapshot | undefined> {
    return this.known(snapshotId, { context }) ?? (await this.store.getSnapshotMetadata({ snapshotId, context }));
  }

  /** Records that the store has a snapshot of the session. */
  noteSaved(sessionId: string, options: SessionStoreOptions): void {
    this.#memoOf(options, sessionId).isSaved = true;
  }

  /** Drops the cache of an earlier session of this id: another process may have deleted that session with its numbers. */
  resetSession(sessionId: string, options: SessionStoreOptions): void {
    if (this.#memos.get(keyOf(options, sessionId))?.isSaved) this.forget(options, sessionId);
  }

  /** Drops the cache of a deleted session. Default: that of all sessions. */
  forget(options: SessionStoreOptions = {}, sessionId?: string): void {
    if (sessionId === undefined) this.#memos.clear();
    else this.#memos.delete(keyOf(options, sessionId));
  }

  /** Removes the numbers of a session that has no snapshot. */
  async forgetUnsaved({ sessionId, context }: RecordOwner): Promise<void> {
    if (await this.store.getSnapshotMetadata({ sessionId, context })) return;
    this.forget({ context }, sessionId);
    await removeSessionNumbers(this.store, { sessionId, context });
  }

  async openSeal(stored: RedactedSnapshot, { context }: SessionStoreOptions): Promise<Seal | undefined> {
    const sessionId = sessionOf(stored);
    if (stored.sealed === undefined || sessionId === undefined) return undefined;
    return this.seals.read({ sessionId, snapshotId: stored.snapshotId, context }, stored.sealed);
  }

  clear(): void {
    this.#known.clear();
    this.#memos.clear();
    this.seals.clear();
  }

  #memoOf(options: SessionStoreOptions, sessionId: string): Memo {
    const key = keyOf(options, sessionId);
    const memo = this.#memos.get(key) ?? { parts: new Map<string, unknown>(), isSaved: false };
    if (memo.parts.size > MAX_MEMO_PARTS) memo.parts.clear();
    this.#memos.set(key, memo, 1);
    return memo;
  }
}

const callers = new WeakMap<object, string>();

/** A key of the caches. It includes the caller's context, because tenants may use the same ids. */
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
    // Contexts that are not JSON can't be compared, so each one counts as another caller.
    caller = randomUUID();
  }
  callers.set(context, caller);
  return caller;
}
