import { addressTo, failedPrecondition, quote } from '../../errors.ts';
import { isPlainObject } from '../../json/fault.ts';
import type { ScopeRecord } from '../../store/contract.ts';
import { parseStateKey } from './state-keys.ts';

/** Access to the object that holds the plain keys. */
export interface PlainState {
  /** The object of the keys, or any other value, which has no keys. */
  get(): unknown;
  /** Replaces the value by the result of `change`, which may be the same object. */
  update(change: (custom: unknown) => unknown): void;
}

/** The plain keys of a session: the members of its custom state. */
export function plainStateOf<S>(session: {
  getCustom(): S | undefined;
  updateCustom(mutator: (custom?: S) => S): void;
}): PlainState {
  return {
    get: () => session.getCustom(),
    update: (change) => session.updateCustom((custom) => change(custom) as S),
  };
}

/** The members of a {@link PlainState}, which has some only while it is a map. */
export class PlainMembers {
  readonly #plain: PlainState;

  constructor(plain: PlainState) {
    this.#plain = plain;
  }

  /** The members, shared: read them synchronously. `undefined` when the custom state is not a map. */
  get view(): object | undefined {
    const custom = this.#plain.get();
    return isPlainObject(custom) ? custom : undefined;
  }

  /** The custom state has keys, or may get some. */
  get isMap(): boolean {
    return this.#plain.get() === undefined || this.view !== undefined;
  }

  /**
   * Changes the custom state in place, so that references to it stay valid.
   *
   * @param name The key that changes, for the error.
   * @throws `FAILED_PRECONDITION` when the custom state is not a map.
   */
  change(name: string, change: (members: ScopeRecord) => void): void {
    if (!this.isMap) {
      const message = `State key ${quote(name)} can't be set because the session's custom state is not a plain object.`;
      throw addressTo('operator', failedPrecondition(message));
    }
    this.#plain.update((custom) => {
      const members = (Object.isFrozen(custom ?? {}) ? { ...(custom as object) } : (custom ?? {})) as ScopeRecord;
      change(members);
      return members;
    });
  }
}

/** The names of members that look like keys of other scopes but are not. */
export function prefixedNames(members: unknown): string[] {
  if (typeof members !== 'object' || members === null) return [];
  return Object.keys(members).filter((name) => parseStateKey(name).scope !== 'session');
}
