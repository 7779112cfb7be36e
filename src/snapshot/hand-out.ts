import { freeze, thaw } from '../json/immutable.ts';
import type { SessionSnapshot, SnapshotMetadata } from './snapshot.ts';

type State<S> = NonNullable<SessionSnapshot<S>['state']>;

/** Node calls a method with this name to print an object. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

export interface HandOutOptions {
  /** Returns the state, which must never change afterwards. Called at most once. Default: the snapshot has no state. */
  state?: (() => unknown) | undefined;
  /** Whether to return the state itself, frozen, instead of a copy. */
  frozen?: boolean | undefined;
}

/**
 * Makes a caller's copy of a snapshot, which later saves do not change. The state is copied on first access, so a caller that reads only
 * the metadata does not pay for a long conversation.
 */
export function handOut<S>(meta: SnapshotMetadata, { state: stored, frozen }: HandOutOptions = {}): SessionSnapshot<S> {
  const snapshot = thaw(meta) as SessionSnapshot<S>;
  if (!stored) return snapshot;
  if (frozen) return Object.assign(snapshot, { state: freeze(stored()) as State<S> });
  let unseen: (() => unknown) | undefined = stored;
  let state: State<S> | undefined;
  return Object.defineProperties(snapshot, {
    state: {
      enumerable: true,
      configurable: true,
      get(): State<S> | undefined {
        if (unseen) {
          state = thaw(unseen()) as State<S>;
          unseen = undefined;
        }
        return state;
      },
      set(replacement: State<S> | undefined) {
        if (Object.isFrozen(snapshot)) throw new TypeError("Cannot assign to 'state' of a frozen snapshot.");
        [state, unseen] = [replacement, undefined];
      },
    },
    [INSPECT]: { configurable: true, value: () => ({ ...snapshot }) },
  });
}
