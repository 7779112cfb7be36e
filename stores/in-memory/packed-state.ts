import { getMember, setMember } from '../../src/json/value.ts';
import { CHUNK, PackedArray } from './packed-array.ts';

/**
 * A stored state: immutable JSON, in which long arrays are packed. Arrays inside arrays are never packed, so the elements of
 * a packed array are plain values, and equal elements of two states can be the same object.
 */
export type PackedState = { readonly packed: unknown };

/** An object with a packed array at any depth. */
class PackedObject {
  readonly members: object;

  constructor(members: object) {
    this.members = members;
  }
}

/**
 * Packs an immutable JSON value.
 *
 * @param value The result of `shareJson` for `base.plain` and the new state.
 * @param base An earlier packed state, and its result of `unpack`. Parts that `value` shares with `base.plain` stay shared when packed.
 */
export function pack(value: unknown, base?: { readonly plain: unknown; readonly state: PackedState }): PackedState {
  if (base && value === base.plain) return base.state;
  return { packed: packValue(value, base?.plain, base?.state.packed) };
}

/** The immutable JSON value. Each call creates packed arrays and the objects above them again. */
export function unpack(state: PackedState): unknown {
  return unpackValue(state.packed);
}

/**
 * Caches the last state that was read or saved, unpacked. A chat needs it again: a turn's save is compared with the state that the turn
 * read, and the next turn reads the saved one.
 */
export class RecentState {
  #state: PackedState | undefined;
  #plain: unknown;

  /** The immutable JSON value. Not cached, because the state may have been removed meanwhile. */
  plainOf(state: PackedState): unknown {
    return state === this.#state ? this.#plain : unpack(state);
  }

  /** The immutable JSON value of a state that is being read. Cached, so that the next read returns the same object. */
  read(state: PackedState): unknown {
    this.note(state, this.plainOf(state));
    return this.#plain;
  }

  /** Caches the result of `unpack`. */
  note(state: PackedState, plain: unknown): void {
    this.#state = state;
    this.#plain = plain;
  }

  forget(): void {
    this.#state = undefined;
    this.#plain = undefined;
  }
}

function packValue(value: unknown, basePlain: unknown, basePacked: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value === basePlain) return basePacked;
  if (!Array.isArray(value)) return packObject(value, basePlain, basePacked);
  if (value.length <= CHUNK) return value;
  return basePacked instanceof PackedArray
    ? PackedArray.from(value, basePacked, basePlain as unknown[])
    : PackedArray.from(value);
}

function packObject(value: object, basePlain: unknown, basePacked: unknown): unknown {
  const plain = typeof basePlain === 'object' && basePlain !== null ? basePlain : {};
  const packed = basePacked instanceof PackedObject ? basePacked.members : plain;
  const members = {};
  let isPacked = false;
  for (const [key, member] of Object.entries(value)) {
    const kept = packValue(member, getMember(plain, key), getMember(packed, key));
    isPacked ||= kept !== member;
    setMember(members, key, kept);
  }
  return isPacked ? new PackedObject(members) : value;
}

function unpackValue(packed: unknown): unknown {
  if (packed instanceof PackedArray) return packed.elements();
  if (!(packed instanceof PackedObject)) return packed;
  const value = {};
  for (const [key, member] of Object.entries(packed.members)) setMember(value, key, unpackValue(member));
  return value;
}
