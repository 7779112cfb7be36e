import { isPlain } from './fault.ts';

type Members = Record<string, unknown>;

/** What stands where an object begins and ends, and before the length of an array. No value holds one of these. */
const OBJECT = Symbol('object');
const END = Symbol('end');
const ARRAY = Symbol('array');

/** So many elements are written at a time besides those that are new: nobody waits for the whole of a long array. */
const MOST_KNOWN = 256;

/**
 * The elements of an immutable array, written one after the other into a flat list of their keys and values. To compare another array with
 * it takes a walk through that one and a list that lies in one piece of memory, instead of a walk through two heaps of small objects: that
 * is what comparing a long conversation costs, above all when others used the processor's caches in between.
 */
export class FlatElements {
  readonly #elements: unknown[] = [];
  /** Where in the list each element begins. */
  readonly #starts: number[] = [];
  readonly #list: unknown[] = [];

  /**
   * Makes it the list of `elements`, or of their head when few of them are in it yet.
   *
   * @param added How many of them are new.
   */
  follow(elements: readonly unknown[], added: number): void {
    const same = this.#countSame(elements);
    if (same < this.#elements.length) this.#cut(same);
    const end = Math.min(elements.length, same + added + MOST_KNOWN);
    for (let i = same; i < end; i++) {
      this.#starts.push(this.#list.length);
      this.#elements.push(elements[i]);
      write(elements[i], this.#list);
    }
  }

  /**
   * How many elements at the head of `values` are those of `base`, an array of immutable elements. May answer less: where `values` has its
   * members in another order, and where the list ends.
   */
  countEqual(base: readonly unknown[], values: readonly unknown[]): number {
    const count = Math.min(this.#countSame(base), values.length);
    const reader = new Reader(this.#list);
    for (let i = 0; i < count; i++) {
      if (!Object.is(values[i], base[i]) && !reader.isAt(this.#starts[i]!, values[i])) return i;
    }
    return count;
  }

  /** How many elements at the head of `elements` are in the list as they are. */
  #countSame(elements: readonly unknown[]): number {
    const known = this.#elements;
    const most = Math.min(known.length, elements.length);
    let count = 0;
    while (count < most && Object.is(known[count], elements[count])) count++;
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

  /** Whether `value` is what stands there. Members of `undefined` are none. */
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
    // No member is asked whose it is: what a value inherits, the one that was written inherited as well, or they differ.
    for (const key in value) {
      const member = (value as Members)[key];
      if (member === undefined) continue;
      if (this.#list[this.#at++] !== key) return false;
      // Most members are texts, and most of those the very same.
      if (typeof member === 'string' ? this.#list[this.#at++] !== member : !this.#isNext(member)) return false;
    }
    return this.#list[this.#at++] === END;
  }
}
