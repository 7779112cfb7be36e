import { failedPrecondition } from '../../errors.ts';
import { capabilitiesOf, type SnapshotStore, type StoreCapabilities } from '../contract.ts';

/** @throws `FAILED_PRECONDITION` for a store that lacks one of the capabilities. */
export function assertCapabilities(
  owner: string,
  store: SnapshotStore,
  needed: readonly (keyof StoreCapabilities)[],
): void {
  const can = capabilitiesOf(store);
  const missing = needed.filter((one) => !can[one]);
  if (missing.length === 0) return;
  throw failedPrecondition(`${owner} needs a store with the capabilities ${missing.join(', ')}.`);
}
