import { failedPrecondition } from '../../errors.ts';
import { capabilitiesOf, type SnapshotStore, type StoreCapabilities } from '../contract.ts';

/** @throws `FAILED_PRECONDITION` for a store that lacks one of the capabilities, or has them for a part of its sessions only. */
export function assertCapabilities(
  owner: string,
  store: SnapshotStore,
  needed: readonly (keyof StoreCapabilities)[],
): void {
  const can = capabilitiesOf(store);
  const missing = needed.filter((one) => !can[one] || (one === 'list' && can.incompleteLists));
  if (missing.length === 0) return;
  throw failedPrecondition(
    `${owner} needs a store with the capabilities ${missing.join(', ')} for all its sessions. ` +
      'Move them with copySessions to one that has these, and use it alone.',
  );
}
