import type { FileTenantStore } from '../file-tenant-store.ts';
import { TenantWatch } from './tenant-watch.ts';

/** The watches of a store: one for each tenant that has a listener. */
export class Watches<S> {
  readonly #byTenant = new Map<string, { readonly tenant: FileTenantStore<S>; readonly watch: TenantWatch<S> }>();
  readonly #pollIntervalMs: number;

  constructor(pollIntervalMs: number) {
    this.#pollIntervalMs = pollIntervalMs;
  }

  /** The tenant of this name that is watched. */
  tenant(name: string): FileTenantStore<S> | undefined {
    return this.#byTenant.get(name)?.tenant;
  }

  /** The watch of a tenant, made when there is none. */
  of(name: string, tenant: FileTenantStore<S>): TenantWatch<S> {
    const known = this.#byTenant.get(name);
    if (known) return known.watch;
    const onIdle = (): void => void this.#byTenant.delete(name);
    const watch = new TenantWatch<S>(tenant.tenant, { pollIntervalMs: this.#pollIntervalMs, onIdle });
    this.#byTenant.set(name, { tenant, watch });
    return watch;
  }

  close(): void {
    for (const { watch } of this.#byTenant.values()) watch.close();
    this.#byTenant.clear();
  }
}
