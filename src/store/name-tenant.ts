import { invalidArgument } from '../errors.ts';
import { assertId } from '../snapshot/ids.ts';
import type { SessionStoreOptions } from './contract.ts';

/** The tenant if no prefix function is configured. Genkit's stores use the same name. */
export const DEFAULT_TENANT = 'global';

/**
 * Returns the name of the caller's tenant from the call's `context`, for example the signed-in user's id. Two callers see the same data
 * exactly if their names are equal. Any id can be a name: stores encode it, so no name gives access to another tenant's data.
 */
export type SnapshotPathPrefix = (options?: SessionStoreOptions) => string;

/**
 * Returns the tenant of a call.
 *
 * @throws `INVALID_ARGUMENT` if the prefix function does not return an id, because a default tenant could expose another tenant's data.
 */
export function nameTenant(
  prefix: SnapshotPathPrefix | undefined,
  options: SessionStoreOptions | undefined,
  optionName = 'snapshotPathPrefix',
): string {
  if (!prefix) return DEFAULT_TENANT;
  const tenant: unknown = prefix(options);
  if (tenant instanceof Promise) {
    tenant.catch(() => {});
    throw invalidArgument(
      `${optionName} must return a string, not a promise. Put the data that it needs into the context.`,
    );
  }
  if (typeof tenant !== 'string')
    throw invalidArgument(
      `${optionName} must return the name of a tenant as a string, but returned ${tenant === null ? 'null' : typeof tenant}. Pass a context that names the tenant.`,
    );
  assertId(tenant, 'tenant prefix');
  return tenant;
}
