import { invalidArgument } from '../../errors.ts';
import { isMembers } from '../../json/fault.ts';
import { copyJson, type Json } from '../../json/value.ts';
import type { ScopeChange, ScopeRecord } from '../../store/contract.ts';
import type { PlainState } from './plain-state.ts';
import { ScopedState, scopeChangesOf } from './scoped-state.ts';
import type { SessionOwner } from '../owner.ts';
import { parseStateKey } from './state-keys.ts';
import type { StateLimits } from './state-values.ts';

/** The parts of a state, as they are stored. */
export interface StateParts {
  /** The session's custom state. */
  readonly plain: unknown;
  readonly user: ScopeRecord;
  readonly app: ScopeRecord;
}

/** A state after a delta, and the data to save. */
export interface StateDraft {
  /** The session's custom state. */
  readonly plain: unknown;
  readonly state: { [key: string]: Json };
  /** The changes that the save must apply to the records. */
  readonly scopes: ScopeChange[];
}

/** All keys of a state, each with its prefix. */
export function mergedState(parts: StateParts): { [key: string]: Json } {
  return open(parts, { appName: '', userId: '' }).state.toObject();
}

/**
 * Applies a delta to a state, by the keys' prefixes. Ignores `temp:` keys and members that are `undefined`.
 *
 * @param owner The owner of the records. Optional: without it, `user:` and `app:` keys are refused.
 * @throws `INVALID_ARGUMENT` for an invalid delta, {@link StateError} for an invalid key or value, `FAILED_PRECONDITION` for a key whose scope
 *   can't be stored.
 */
export function draftState(
  parts: StateParts,
  delta: unknown,
  { owner, limits }: { owner: SessionOwner | undefined; limits: StateLimits | undefined },
): StateDraft {
  if (!isMembers(delta)) {
    throw invalidArgument("A state must be an object of keys and values; shared keys begin with 'user:' or 'app:'.");
  }
  const { state, plain } = open(parts, owner, limits);
  for (const [key, value] of Object.entries(delta as ScopeRecord)) {
    if (value !== undefined && parseStateKey(key).scope !== 'temp') state.set(key, value);
  }
  return { plain: plain.get(), state: state.toObject(), scopes: scopeChangesOf(state) };
}

function open(
  { plain, user, app }: StateParts,
  owner: SessionOwner | undefined,
  limits?: StateLimits,
): { state: ScopedState; plain: PlainState } {
  let custom = plain === undefined ? undefined : copyJson(plain);
  const cell: PlainState = { get: () => custom, update: (change) => void (custom = change(custom)) };
  const scopes = owner && {
    user: { id: { scope: 'user', ...owner } as const, record: user },
    app: { id: { scope: 'app', appName: owner.appName } as const, record: app },
  };
  return { state: new ScopedState({ plain: cell, ...scopes, ...(limits && { limits }) }), plain: cell };
}
