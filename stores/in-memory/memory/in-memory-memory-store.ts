import { BaseMemoryStore, type MemoryTenant } from '../../../src/store/memory/base-memory-store.ts';
import type { MemoryStoreCapabilities } from '../../../src/store/memory/contract.ts';
import { checkOptions, isFunction } from '../../../src/store/check-options.ts';
import type { SnapshotPathPrefix } from '../../../src/store/name-tenant.ts';
import { InMemoryMemoryTenant } from './memory-tenant.ts';

/** Options of {@link InMemoryMemoryStore}. */
export interface InMemoryMemoryStoreOptions {
  /**
   * Names the caller's tenant; callers see only the data of their own tenant. The session stores of the agents need the same tenants,
   * or smaller ones: all sessions of a tenant must belong to one tenant of memories. Default: one tenant for all.
   */
  pathPrefix?: SnapshotPathPrefix;
}

const CAPABILITIES: Readonly<MemoryStoreCapabilities> = Object.freeze({ shared: false, vectorDimensions: 4096 });

/**
 * Keeps memories in the memory of this process, until it ends or `close()` is called. For tests and development. Results of methods are
 * frozen.
 *
 * @example
 * const memories = new InMemoryMemoryStore();
 * const scope = { scope: 'user', appName: 'barista', userId: 'ada' } as const;
 * const { notes } = await memories.notes(scope, 'summary');
 */
export class InMemoryMemoryStore extends BaseMemoryStore {
  /** What this store can do. */
  readonly capabilities = CAPABILITIES;
  readonly #tenants = new Map<string, InMemoryMemoryTenant>();

  constructor(options?: InMemoryMemoryStoreOptions) {
    checkOptions('InMemoryMemoryStore', options, { pathPrefix: isFunction });
    super('InMemoryMemoryStore', options?.pathPrefix);
  }

  protected openTenant(id: string): MemoryTenant {
    const tenant = this.#tenants.get(id) ?? new InMemoryMemoryTenant();
    this.#tenants.set(id, tenant);
    return tenant;
  }

  protected release(): void {
    this.#tenants.clear();
  }
}
