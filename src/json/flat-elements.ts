import { countSame } from './count-same.ts';
import { isPlain } from './fault.ts';

type Members = Record<string, unknown>;

/** Markers of the start and end of an object, and of the length of an array. No value contains one of them. */
const OBJECT = Symbol('object');
const END = Symbol('end');
const ARRAY = Symbol('array');

/** How many elements one call writes besides the new ones, so that it never writes a whole long array. */
const MOST_KNOWN = 256;

/**
 * The elements of an immutable array as one flat list of their keys and values. Comparing another array with the list reads contiguous
 * memory, instead of many small objects. In a long conversation memory access is most of the cost of a comparison, above all with cold
 * processor caches.
 */
export class FlatElements {
  readonly #elements: unknown[] = [];
  /** The start of each element in the list. */
  readonly #starts: number[] = [];
  readonly #list: unknown[] = [];

  /**
   * Updates the list to `elements`, or to their head if few of them are in it yet.
   *
   * @param added The number of new elements.
   */
  follow(elements: readonly unknown[], added: number): void {
    const same = countSame(this.#elements, elements);
    if (same < this.#elements.length) this.#cut(same);
    const end = Math.min(elements.length, same + added + MOST_KNOWN);
    for (let i = same; i < end; i++) {
      this.#starts.push(this.#list.length);
      this.#elements.push(elements[i]);
      write(elements[i], this.#list);
    }
  }

  /**
   * How many elements at the head of `values` equal those of `base`, an array of immutable elements. The result is too small if members of
   * `values` have another order, or if the list ends before.
   */
  countEqual(base: readonly unknown[], values: readonly unknown[]): number {
    const count = Math.min(countSame(this.#elements, base), values.length);
    const reader = new Reader(this.#list);
    for (let i = 0; i < count; i++) {
      if (!Object.is(values[i], base[i]) && !reader.isAt(this.#starts[i]!, values[i])) return i;
    }
    return count;
  }

  #cut(count: number): void {
    this.#list.length = this.#starts[count]!;
    this.#starts.length = count;
    this.#elements.length = count;
  }
}

/** Writes an immutable JSON value. */
function write(value: unknown, list: unknown[]): void {
  if (typeof value !== 'object' || value === null) {
    list.push(value);
  } else if (Array.isArray(value)) {
    list.push(ARRAY, value.length);
    for (const element of value) write(element, list);
  } else {
    list.push(OBJECT);
    for (const key in value) {
      list.push(key);
      write((value as Members)[key], list);
    }
    list.push(END);
  }
}

/** Compares values with a list. */
class Reader {
  readonly #list: readonly unknown[];
  #at = 0;

  constructor(list: readonly unknown[]) {
    this.#list = list;
  }

  /** Whether `value` equals the next value of the list. Members that are `undefined` count as absent. */
  isAt(place: number, value: unknown): boolean {
    this.#at = place;
    return this.#isNext(value);
  }

  #isNext(value: unknown): boolean {
    const next = this.#list[this.#at++];
    if (typeof value !== 'object' || value === null) return next === value && (value !== 0 || Object.is(next, value));
    if (!isPlain(value)) return false;
    if (Array.isArray(value)) {
      if (next !== ARRAY || this.#list[this.#at++] !== value.length) return false;
      for (let i = 0; i < value.length; i++) if (!this.#isNext(value[i])) return false;
      return true;
    }
    if (next !== OBJECT) return false;
    // Own and inherited members are not distinguished: the written value inherits the same members, or the values differ.
    for (const key in value) {
      const member = (value as Members)[key];
      if (member === undefined) continue;
      if (this.#list[this.#at++] !== key) return false;
      // Most members are strings, compared here without a call.
      if (typeof member === 'string' ? this.#list[this.#at++] !== member : !this.#isNext(member)) return false;
    }
    return this.#list[this.#at++] === END;
  }
}
