import { freeze, thaw } from '../json/immutable.ts';
import type { SessionSnapshot, SnapshotMetadata } from './snapshot.ts';

type State<S> = NonNullable<SessionSnapshot<S>['state']>;

/** Node asks for a method of this name before it prints an object. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** What {@link handOut} hands out. */
export interface HandOutOptions {
  /** The state, asked for once, a copy not before it is looked at; it must never change after this. Omitted: the snapshot has none. */
  state?: (() => unknown) | undefined;
  /** The state itself, frozen, instead of a copy. */
  frozen?: boolean | undefined;
}

/**
 * A snapshot as a caller gets it: a copy. The state is copied when it is first accessed, so a caller that reads only the metadata does not pay
 * for a long conversation. It is the state as of the read all the same.
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
