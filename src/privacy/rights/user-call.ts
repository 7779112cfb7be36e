import { failedPrecondition } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import { capabilitiesOf, type SnapshotStore, type StoreCapabilities } from '../../store/contract.ts';
import { checkOptions, isObject, type OptionCheck } from '../../store/check-options.ts';
import type { UserMemories } from '../../store/memory/user-memories.ts';

export const isUserMemories: OptionCheck = (value) =>
  typeof (value as Partial<UserMemories> | null)?.eraseWaiting === 'function' ? undefined : 'a memory manager';

/** @throws `INVALID_ARGUMENT` for an unknown option, and for a `userId` that is no id. */
export function checkUserCall(
  name: string,
  options: { readonly userId: string },
  checks: Readonly<Record<string, OptionCheck>>,
): void {
  checkOptions(name, options, { userId: () => undefined, context: isObject, ...checks });
  assertId(options?.userId, 'userId');
}

/** @throws `FAILED_PRECONDITION` for a store that lacks one of the capabilities. */
export function needsCapabilities(
  name: string,
  store: SnapshotStore,
  needed: readonly (keyof StoreCapabilities)[],
): void {
  const can = capabilitiesOf(store);
  const missing = needed.filter((one) => !can[one]);
  if (missing.length > 0)
    throw failedPrecondition(`${name} needs a store with the capabilities ${missing.join(', ')}.`);
}
