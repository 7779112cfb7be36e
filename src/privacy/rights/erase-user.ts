import { reserveSnapshotId } from '../../snapshot/ids.ts';
import {
  keepsRecords,
  keepsScopes,
  type SessionStoreOptions,
  type SnapshotStore,
  type Unreadable,
} from '../../store/contract.ts';
import { erasureSessionOf, hashOfUser, noteErasure } from '../../store/records/erasure.ts';
import { isFunction, isSignal } from '../../store/check-options.ts';
import type { MemoryScopeId } from '../../store/memory/contract.ts';
import type { UserMemories } from '../../store/memory/user-memories.ts';
import { reportAccess } from '../audit/auditing.ts';
import { UnreadableItems } from '../../store/list/items-of.ts';
import { assertCapabilities } from '../../store/parts/assert-capabilities.ts';
import { checkUserCall, isUserMemories, memoryScopesOf, scopesOfUser } from './user-call.ts';

/** Options of {@link eraseUser}. */
export interface EraseUserOptions extends SessionStoreOptions {
  /** The user's id, as the agents' option `userId` gives it. */
  userId: string;
  /** The memory manager of the agents, to erase the memories of the user and of their sessions, too. Default: memories stay. */
  memory?: UserMemories;
  /** Called after each step, with the counts of this call so far. */
  onProgress?: (progress: EraseCounts) => void;
  /** Ends the call between two steps, with the signal's reason. Call it again to continue. */
  signal?: AbortSignal;
}

/** The counts of an erasure. */
export interface EraseCounts {
  /** Sessions that the user owned. */
  sessions: number;
  /** Snapshots of these sessions. */
  snapshots: number;
  /** Shards of these sessions: parts of states that snapshots share. */
  shards: number;
  /** Session records of these sessions. */
  records: number;
  /** The user's records of all apps. */
  scopes: number;
  /** Memories of the user and of these sessions. Missing without `memory`. */
  memories?: number;
}

/** The result of {@link eraseUser}. */
export interface EraseReceipt extends EraseCounts {
  /** SHA-256 of the user id, 64 hex digits: the receipt holds no id. */
  userHash: string;
  /** The time when everything was removed, in ISO 8601. */
  erasedAt: string;
  /**
   * Data that can't be read. Its owner is unknown, so it was not removed. Restore it from a backup and call `eraseUser` again; or remove the
   * user's part with `deleteSession`, with `erase` of the memory manager, or as a file. Missing when there is none.
   */
  unreadable?: Unreadable[];
}

/** How many sessions are recorded and deleted together. */
const PAGE = 300;
const RECORD = { kind: 'erasure', key: 'sessions' } as const;

/**
 * Removes all data of a user from a store, in the tenant of `context`: the sessions that they own with all snapshots and session records,
 * sessions on hold too, and the user's records of all apps. It may be interrupted at any point, even by the end of its process. Call it
 * again to remove the rest; only the rest is counted then. Without data the counts are 0.
 *
 * Turns of the user that run meanwhile, in any process, restore nothing: their saves are refused with `ABORTED`. The user may start again
 * when the promise resolves. For this, a record with a hash of the user id and a number stays. A store without `capabilities.scopes` can't
 * keep it: there, the first turn of a new session that began before may still be saved.
 *
 * With `memory`, the memories of the user and of these sessions are removed, too. Memories that all users of an app may read stay,
 * without texts that wait to be learned or approved: call `memory.forgetSource` before, to remove those that a session has added.
 *
 * Only sessions that the user owns are found. The user's messages in sessions of other owners stay, and so does data outside of the store:
 * logs, traces, backups, archives of retention, kept streams.
 *
 * @throws `FAILED_PRECONDITION` for a store that can't list sessions by their owners or delete them, and the store's errors.
 * @example
 * const receipt = await eraseUser(store, { userId: 'ada' });
 */
export async function eraseUser(store: SnapshotStore, options: EraseUserOptions): Promise<EraseReceipt> {
  checkUserCall('eraseUser', options, { memory: isUserMemories, onProgress: isFunction, signal: isSignal });
  assertCapabilities('eraseUser', store, ['list', 'details', 'delete']);
  const { userId, context } = options;
  const access = { action: 'erase', operation: 'eraseUser', userId, ...(context && { context }) } as const;
  return reportAccess(store, access, () => new Erasure(store, options).run());
}

class Erasure {
  readonly #store: SnapshotStore;
  readonly #options: EraseUserOptions;
  readonly #userHash: string;
  /** The erasure's own session. Its record names the sessions that are being deleted, because half deleted ones are in no list. */
  readonly #journal: { readonly sessionId: string } & SessionStoreOptions;
  #unreadable = new UnreadableItems();
  readonly #counts: EraseCounts = { sessions: 0, snapshots: 0, shards: 0, records: 0, scopes: 0 };

  constructor(store: SnapshotStore, options: EraseUserOptions) {
    this.#store = store;
    this.#options = options;
    this.#userHash = hashOfUser(options.userId);
    this.#journal = { sessionId: erasureSessionOf(this.#userHash), context: options.context };
  }

  async run(): Promise<EraseReceipt> {
    this.#options.signal?.throwIfAborted();
    await this.#finishEarlier();
    await this.#refuseRunningTurns();
    await this.#eraseSessions();
    // After the sessions: until then a turn in one of them may change a record.
    await this.#eraseScopes();
    await this.#eraseUserMemories();
    await this.#store.deleteSession(this.#journal);
    const unreadable = this.#unreadable.all;
    const erasedAt = new Date().toISOString();
    return { userHash: this.#userHash, ...this.#counts, erasedAt, ...(unreadable.length > 0 && { unreadable }) };
  }

  /** Deletes the sessions that an interrupted erasure was deleting. */
  async #finishEarlier(): Promise<void> {
    if (!keepsRecords(this.#store)) return;
    const records = await this.#store.readRecords({ ...this.#journal, kind: RECORD.kind });
    for (const { value } of records) await this.#delete(value as string[]);
  }

  /** From here on, refuses all saves that could restore erased data. */
  async #refuseRunningTurns(): Promise<void> {
    if (!keepsScopes(this.#store)) return;
    const { sessionId, context } = this.#journal;
    const createdAt = new Date().toISOString();
    // Only a save can change a record, so this saves a snapshot without state.
    await this.#store.saveSnapshot(reserveSnapshotId(), () => ({ sessionId, createdAt, status: 'completed' }), {
      context,
      scopes: [noteErasure(this.#options.userId)],
    });
  }

  async #eraseSessions(): Promise<void> {
    const { userId, context } = this.#options;
    let cursor: string | undefined;
    do {
      const page = { ownerId: userId, context, limit: PAGE, ...(cursor && { cursor }) };
      if (!cursor) this.#unreadable = new UnreadableItems();
      const { items, nextCursor, unreadable } = await this.#store.listSessions(page);
      this.#unreadable.add(unreadable);
      if (items.length > 0) await this.#deleteRecorded(items.map(({ sessionId }) => sessionId));
      // Lists from the beginning again, because a session that was written meanwhile comes first.
      cursor = items.length > 0 ? '' : nextCursor;
    } while (cursor !== undefined);
  }

  async #deleteRecorded(sessionIds: string[]): Promise<void> {
    if (keepsRecords(this.#store)) await this.#store.writeRecord({ ...this.#journal, ...RECORD, value: sessionIds });
    await this.#delete(sessionIds);
  }

  async #delete(sessionIds: readonly string[]): Promise<void> {
    // Before the sessions: without them it is unknown whose memories these are.
    await this.#eraseSessionMemories(sessionIds);
    await this.#deleteSessions(sessionIds);
    // Again, because until the sessions were deleted the memory could mark their messages as read, and learn from a turn that ended.
    await this.#eraseSessionMemories(sessionIds);
  }

  async #deleteSessions(sessionIds: readonly string[]): Promise<void> {
    const { context } = this.#options;
    if (this.#store.deleteSessions) {
      this.#count(await this.#store.deleteSessions({ sessionIds, context }));
      return;
    }
    for (const sessionId of sessionIds) {
      // Records that can't be read can still be deleted.
      const read = keepsRecords(this.#store)
        ? await this.#store.readRecords({ sessionId, context }).catch(() => [])
        : [];
      const { snapshots, shards, records = read.length } = await this.#store.deleteSession({ sessionId, context });
      this.#count({ sessions: snapshots > 0 ? 1 : 0, snapshots, shards, records });
    }
  }

  /** Also erases texts of these sessions that wait to be learned or approved for all users of an app. */
  async #eraseSessionMemories(sources: readonly string[]): Promise<void> {
    const ids = new Set(sources);
    const isOwn = (scope: MemoryScopeId) => scope.scope === 'session' && ids.has(scope.sessionId);
    const { own, apps } = await memoryScopesOf(this.#options, isOwn);
    await this.#eraseMemories(own);
    for (const scope of apps) await this.#options.memory!.eraseWaiting({ scope, sources });
  }

  async #eraseUserMemories(): Promise<void> {
    const { memory, userId, context } = this.#options;
    const filter = (scope: MemoryScopeId) => scope.scope === 'user' && scope.userId === userId;
    const onUnreadable = (items: Unreadable[]) => this.#unreadable.add(items);
    await this.#eraseMemories((await memory?.listScopes({ filter, context, onUnreadable })) ?? []);
  }

  async #eraseMemories(scopes: readonly object[]): Promise<void> {
    const { memory } = this.#options;
    if (memory) this.#counts.memories ??= 0;
    for (const scope of scopes) {
      const { memories } = await memory!.erase({ scope });
      this.#count({ memories });
    }
  }

  async #eraseScopes(): Promise<void> {
    const { context } = this.#options;
    const store = this.#store;
    if (!keepsScopes(store)) return;
    for await (const scope of scopesOfUser(store, this.#options, this.#unreadable)) {
      this.#count({ scopes: (await store.deleteScope({ context, scope })) ? 1 : 0 });
    }
  }

  #count(removed: Partial<EraseCounts>): void {
    for (const [name, count] of Object.entries(removed)) {
      const kind = name as keyof EraseCounts;
      this.#counts[kind] = (this.#counts[kind] ?? 0) + count;
    }
    this.#options.onProgress?.({ ...this.#counts });
    this.#options.signal?.throwIfAborted();
  }
}
