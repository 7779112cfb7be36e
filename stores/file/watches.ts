import type { SessionSnapshot } from '../../src/store/contract.ts';
import { WatchHub } from '../../src/store/watch-hub.ts';
import type { Tenant } from './tenant.ts';
import { TenantWatch, type ReadForWatch } from './tenant-watch.ts';

/** The watches of a store: one for each tenant that somebody listens to. */
export class Watches<S> {
  readonly #hub = new WatchHub<S>();
  readonly #byTenant = new Map<string, TenantWatch<S>>();
  readonly #read: ReadForWatch<S>;
  readonly #pollIntervalMs: number;

  constructor(options: { read: ReadForWatch<S>; pollIntervalMs: number }) {
    this.#read = options.read;
    this.#pollIntervalMs = options.pollIntervalMs;
  }

  /** The tenant of this name that is watched. */
  tenant(name: string): Tenant | undefined {
    return this.#byTenant.get(name)?.tenant;
  }

  /** Tells `listener` of the snapshot; the answer ends that. */
  subscribe(tenant: Tenant, snapshotId: string, listener: (snapshot: SessionSnapshot<S>) => void): () => void {
    return this.#watchOf(tenant).subscribe(snapshotId, listener);
  }

  close(): void {
    this.#hub.close();
    for (const watch of this.#byTenant.values()) watch.close();
    this.#byTenant.clear();
  }

  #watchOf(tenant: Tenant): TenantWatch<S> {
    const name = tenant.folder.tenant;
    const known = this.#byTenant.get(name);
    if (known) return known;
    const onIdle = (): void => void this.#byTenant.delete(name);
    const options = { read: this.#read, pollIntervalMs: this.#pollIntervalMs, onIdle };
    const watch = new TenantWatch(tenant, this.#hub, options);
    this.#byTenant.set(name, watch);
    return watch;
  }
}
