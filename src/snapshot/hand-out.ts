import { copyJson } from '../json/value.ts';
import type { SessionSnapshot, SnapshotMetadata } from './snapshot.ts';

type State<S> = NonNullable<SessionSnapshot<S>['state']>;

/** Node asks for a method of this name before it prints an object. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/**
 * A snapshot as a caller gets it: a copy of its own. The state is copied when it is first looked at, so who only wants to know what a
 * snapshot is, or who its parent is, pays nothing for a long conversation. It is the state as of the read all the same.
 *
 * @param copyState Copies the state, which must never change after this; omitted: the snapshot has none.
 */
export function handOut<S>(meta: SnapshotMetadata, copyState?: () => State<S>): SessionSnapshot<S> {
  const snapshot = copyJson(meta) as SessionSnapshot<S>;
  if (!copyState) return snapshot;
  let copy: (() => State<S>) | undefined = copyState;
  let state: State<S> | undefined;
  return Object.defineProperties(snapshot, {
    state: {
      enumerable: true,
      configurable: true,
      get(): State<S> | undefined {
        if (copy) [state, copy] = [copy(), undefined];
        return state;
      },
      set(replacement: State<S> | undefined) {
        if (Object.isFrozen(snapshot)) throw new TypeError("Cannot assign to 'state' of a frozen snapshot.");
        [state, copy] = [replacement, undefined];
      },
    },
    [INSPECT]: { configurable: true, value: () => ({ ...snapshot }) },
  });
}
