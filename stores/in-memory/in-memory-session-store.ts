import { ALL_CAPABILITIES, type StoreCapabilities } from '../../src/store/contract.ts';
import { BaseSessionStore, type TenantStore } from '../../src/store/base-session-store.ts';
import { checkOptions, isBoolean, isFunction } from '../../src/store/check-options.ts';
import type { SnapshotPathPrefix } from '../../src/store/name-tenant.ts';
import { WatchHub } from '../../src/store/parts/watch-hub.ts';
import { RecentState } from './packed-state.ts';
import { InMemoryTenantStore, type Shared } from './in-memory-tenant-store.ts';

/** Options of {@link InMemorySessionStore}. */
export interface InMemorySessionStoreOptions {
  /** Lookups by `sessionId` of a session with more than one leaf throw `FAILED_PRECONDITION`. Default: `false`. */
  rejectBranchingSessions?: boolean;
  /** Names the caller's tenant; callers see only the data of their own tenant. Default: one tenant for all. */
  snapshotPathPrefix?: SnapshotPathPrefix;
}

const CAPABILITIES: Readonly<StoreCapabilities> = Object.freeze({
  ...ALL_CAPABILITIES,
  watchAcrossProcesses: false,
  durable: false,
});

/**
 * Keeps snapshots in the memory of this process, until it ends or `close()` is called. For tests, development, and sessions that need not
 * survive a restart.
 *
 * Snapshots share the equal parts of their states, so a session takes about the memory of what its turns added, however many snapshots it
 * has. Results of methods are the caller's own copies.
 *
 * @example
 * const store = new InMemorySessionStore<{ orderId?: string }>();
 * const id = await store.saveSnapshot(undefined, () => ({
 *   sessionId: 'support-1',
 *   createdAt: new Date().toISOString(),
 *   status: 'completed',
 *   state: { custom: { orderId: 'A-17' } },
 * }));
 * const leaf = await store.getSnapshot({ sessionId: 'support-1' });
 */
export class InMemorySessionStore<S = unknown> extends BaseSessionStore<S> {
  /** What this store can do. */
  readonly capabilities = CAPABILITIES;
  readonly #shared: Shared<S>;

  constructor(options?: InMemorySessionStoreOptions) {
    checkOptions('InMemorySessionStore', options, {
      rejectBranchingSessions: isBoolean,
      snapshotPathPrefix: isFunction,
    });
    super('InMemorySessionStore', options?.snapshotPathPrefix);
    this.#shared = {
      tenants: new Map(),
      rejectBranching: options?.rejectBranchingSessions ?? false,
      watchers: new WatchHub(),
      recent: new RecentState(),
    };
  }

  protected tenant(id: string): TenantStore<S> {
    return this.#shared.tenants.get(id) ?? new InMemoryTenantStore(id, this.#shared);
  }

  protected release(): void {
    this.#shared.watchers.close();
    this.#shared.tenants.clear();
    this.#shared.recent.forget();
  }
}
