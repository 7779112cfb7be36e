import { logger } from 'genkit/logging';
import { errorMessage, failedPrecondition, notFound, quote, SessionConflictError } from '../../errors.ts';
import { assertPolicy } from '../../snapshot/retention.ts';
import {
  keepsRecords,
  type PrunePolicy,
  type RecordStore,
  type SessionStoreOptions,
  type SessionSummary,
  type SnapshotStore,
} from '../../store/contract.ts';
import { HOLD_RECORDS } from '../../store/records/session-records.ts';
import { checkOptions, isBoolean, isFunction, isSignal } from '../../store/check-options.ts';
import { itemsOf } from '../../store/list/items-of.ts';
import { assertCapabilities } from '../../store/parts/assert-capabilities.ts';
import { jsonLines, linesOfSession } from '../../store/migrate/session-lines.ts';

type Context = SessionStoreOptions['context'];

/** How long sessions are kept. Each limit applies by itself. */
export type RetentionPolicy = PrunePolicy;

/** A session that is about to be removed. */
export interface ArchivedSession extends SessionStoreOptions {
  /** Its entry in the list of sessions. */
  readonly summary: SessionSummary;
  /** The session with its records and snapshots as JSON Lines, as `exportUser` writes them. May be called more than once. */
  lines(): AsyncIterable<string>;
}

/** Options of {@link applyRetention}. */
export interface RetentionOptions {
  /** The contexts that name the tenants for the store, or a function that returns them. Default: the tenant without a context. */
  contexts?: readonly Context[] | (() => readonly Context[] | Promise<readonly Context[]>);
  /** Removes nothing, archives nothing, and counts what would be removed. Default: `false`. */
  dryRun?: boolean;
  /**
   * Awaited before a whole session is removed, to write it elsewhere: `archiveToDirectory`, `archiveToBucket`. If it throws, or the session
   * is written meanwhile, the session stays. Snapshots that a session loses by `maxAgeMs` or `maxChainLength` are not archived. Do not
   * combine it with a database's own expiry (`expireAfterMs` of `FirestoreSessionStore`), which removes sessions without archiving them.
   */
  archive?: (session: ArchivedSession) => Promise<void>;
  /** Called after each session, with the counts so far. */
  onProgress?: (progress: RetentionResult) => void;
  /** Ends the call between two sessions, with the signal's reason. The next call begins with the first of `contexts` again. */
  signal?: AbortSignal;
}

/** The counts of {@link applyRetention}; with `dryRun`, what it would remove. */
export interface RetentionResult {
  /** Sessions that were checked. */
  seen: number;
  /** Sessions that were removed completely. */
  sessions: number;
  /** Snapshots that were removed, including those of removed sessions. */
  snapshots: number;
  /** Orphan shards that were removed: parts of states that no snapshot needs. 0 with `dryRun`. */
  shards: number;
  /** Sessions that stay as they are because they are on hold. */
  held: number;
  /** Sessions that could not be archived, read or removed; the log says why. They are tried again by the next call. */
  failed: number;
}

/** Ages are not trusted after the clock has jumped further than this, in ms. */
const LARGEST_JUMP_MS = 60_000;

/**
 * Removes sessions and snapshots that are older than a policy allows, session by session. Call it from a scheduler. A session that is
 * written meanwhile stays, and so does one with any session record of the kind `hold`: see {@link holdSession}.
 *
 * It may be interrupted at any point, and several processes may run it at once. Ages are measured by this machine's clock: when it jumps by
 * more than a minute during the call, nothing more is removed. A tenant whose sessions can't be listed is logged, and the others are checked.
 *
 * @param policy For all sessions, or a function of a session's summary and its tenant's context; `undefined` keeps all of it.
 * @throws `FAILED_PRECONDITION` for a store that can't list, delete and prune, and when the clock jumps; at the end, the store's first error from listing.
 * @example
 * // Every night: archive and remove the sessions that were not written for a year.
 * await applyRetention(store, { idleMs: 365 * 24 * 3_600_000 }, { archive: archiveToDirectory('/var/archive') });
 */
export async function applyRetention(
  store: SnapshotStore,
  policy:
    | RetentionPolicy
    | ((
        summary: SessionSummary,
        context: Context,
      ) => RetentionPolicy | undefined | Promise<RetentionPolicy | undefined>),
  options: RetentionOptions = {},
): Promise<RetentionResult> {
  checkOptions('applyRetention', options, {
    contexts: (value) => (Array.isArray(value) ? undefined : isFunction(value) && 'a list or a function'),
    dryRun: isBoolean,
    archive: isFunction,
    onProgress: isFunction,
    signal: isSignal,
  });
  assertCapabilities('applyRetention', store, ['list', 'delete', 'prune', 'compareLeaf']);
  if (typeof policy !== 'function') assertPolicy(policy);
  const { contexts = [undefined] } = options;
  const run = new Retention(store, options);
  for (const context of typeof contexts === 'function' ? await contexts() : contexts) {
    const policyOf = async (summary: SessionSummary) =>
      typeof policy === 'function' ? policy(summary, context) : policy;
    await run.tenant(context, policyOf);
  }
  if (run.errors.length > 0) throw run.errors[0];
  return run.result;
}

class Retention {
  readonly result: RetentionResult = { seen: 0, sessions: 0, snapshots: 0, shards: 0, held: 0, failed: 0 };
  /** From listing the sessions of tenants. */
  readonly errors: unknown[] = [];
  readonly #store: SnapshotStore;
  readonly #options: RetentionOptions;
  /** The wall clock and a clock that never jumps, when the call began. */
  readonly #begun = { at: Date.now(), steady: performance.now() };

  constructor(store: SnapshotStore, options: RetentionOptions) {
    this.#store = store;
    this.#options = options;
  }

  async tenant(
    context: Context,
    policyOf: (summary: SessionSummary) => Promise<RetentionPolicy | undefined>,
  ): Promise<void> {
    const { signal, onProgress } = this.#options;
    for await (const summary of this.#sessionsOf(context)) {
      signal?.throwIfAborted();
      this.#assertSteadyClock();
      this.result.seen++;
      try {
        const policy = await policyOf(summary);
        if (policy) assertPolicy(policy);
        if (policy && this.#isDue(summary, policy)) await this.#apply(summary, policy, context);
      } catch (error) {
        // A session that is written meanwhile is no longer too old.
        if (!SessionConflictError.isInstance(error)) {
          this.result.failed++;
          logger.warn(`Retention did not change session ${quote(summary.sessionId)}. ${errorMessage(error)}`);
        }
      }
      onProgress?.({ ...this.result });
    }
  }

  async *#sessionsOf(context: Context): AsyncGenerator<SessionSummary> {
    const list = { context, limit: 1000 };
    try {
      yield* itemsOf((page: typeof list) => this.#store.listSessions(page), list);
    } catch (error) {
      this.errors.push(error);
      logger.warn(`Retention could not list the sessions of a tenant. ${errorMessage(error)}`);
    }
  }

  /** Whether the policy may remove anything of the session. */
  #isDue(
    summary: SessionSummary,
    { maxAgeMs = Infinity, maxChainLength = Infinity, ...policy }: RetentionPolicy,
  ): boolean {
    const { createdAt, snapshotCount } = summary;
    const hasOlder = snapshotCount > 1 && this.#ageOf(createdAt) > maxAgeMs;
    return this.#isIdle(summary, policy) || hasOlder || snapshotCount > maxChainLength;
  }

  #isIdle({ updatedAt, status }: SessionSummary, { idleMs = Infinity }: RetentionPolicy): boolean {
    return status !== 'pending' && this.#ageOf(updatedAt) > idleMs;
  }

  async #apply(summary: SessionSummary, policy: RetentionPolicy, context: Context): Promise<void> {
    const { sessionId, leafId } = summary;
    const { dryRun = false, archive } = this.#options;
    if (await isHeld(this.#store, { sessionId, context })) {
      this.result.held++;
      return;
    }
    if (!this.#isIdle(summary, policy)) {
      const { idleMs: _, ...ofSnapshots } = policy;
      this.#count(await this.#store.prune(ofSnapshots, { context, dryRun, sessionId }));
      return;
    }
    if (dryRun) {
      this.#count({ sessions: 1, snapshots: summary.snapshotCount, shards: 0 });
      return;
    }
    await archive?.({
      summary,
      context,
      lines: () => jsonLines(linesOfSession(this.#store, summary, { context })),
    });
    this.#assertSteadyClock();
    // The session may have been put on hold while it was archived.
    if (archive && (await isHeld(this.#store, { sessionId, context }))) {
      this.result.held++;
      return;
    }
    this.#count({ sessions: 1, ...(await this.#store.deleteSession({ sessionId, context, expectedLeafId: leafId })) });
  }

  #count({ sessions, snapshots, shards }: Pick<RetentionResult, 'sessions' | 'snapshots' | 'shards'>): void {
    this.result.sessions += sessions;
    this.result.snapshots += snapshots;
    this.result.shards += shards;
  }

  /** The age in ms. A time that can't be read counts as recent. */
  #ageOf(time: string): number {
    const age = this.#begun.at - Date.parse(time);
    return Number.isNaN(age) ? -Infinity : age;
  }

  #assertSteadyClock(): void {
    const jumpMs = Date.now() - this.#begun.at - (performance.now() - this.#begun.steady);
    if (Math.abs(jumpMs) <= LARGEST_JUMP_MS) return;
    throw failedPrecondition(
      `The clock of this machine jumped by ${Math.round(jumpMs / 1000)} s while retention ran, so nothing more was removed. ` +
        'Set the clock right and call applyRetention again.',
    );
  }
}

/** Names a session for {@link holdSession}. */
export interface HeldSession extends SessionStoreOptions {
  /** The session's id. */
  sessionId: string;
  /** The id of the hold. A session may have several, and stays until all are released. Default: `hold`. */
  key?: string;
  /** The reason, for people. Optional. */
  reason?: string;
}

/**
 * Keeps a session from `applyRetention`, for example for a lawsuit, by a session record of the kind `hold`. A session on hold does not
 * expire either (`expireAfterMs` of `FirestoreSessionStore`). `deleteSession`, `prune` and `eraseUser` still remove it.
 *
 * @throws `NOT_FOUND` when there is no such session, `FAILED_PRECONDITION` for a store that keeps no session records.
 */
export async function holdSession(store: SnapshotStore, options: HeldSession): Promise<void> {
  const { sessionId, context, key = HOLD_RECORDS, reason } = options;
  const leaf = await store.getSnapshotMetadata({ sessionId, context });
  if (!leaf) throw notFound(`There is no session ${quote(sessionId)} to hold.`);
  const value = { since: new Date().toISOString(), ...(reason !== undefined && { reason }) };
  await recordsOf(store).writeRecord({
    sessionId,
    context,
    kind: HOLD_RECORDS,
    key,
    value,
    ifSnapshot: leaf.snapshotId,
  });
}

/** Ends a hold; nothing happens when there is none. */
export async function releaseSession(store: SnapshotStore, options: Omit<HeldSession, 'reason'>): Promise<void> {
  const { sessionId, context, key = HOLD_RECORDS } = options;
  await recordsOf(store).writeRecord({ sessionId, context, kind: HOLD_RECORDS, key, value: undefined });
}

async function isHeld(store: SnapshotStore, session: { sessionId: string; context: Context }): Promise<boolean> {
  return keepsRecords(store) && (await store.readRecords({ ...session, kind: HOLD_RECORDS })).length > 0;
}

function recordsOf(store: SnapshotStore): RecordStore {
  if (keepsRecords(store)) return store;
  throw failedPrecondition('Holding a session needs a store that keeps session records.');
}
