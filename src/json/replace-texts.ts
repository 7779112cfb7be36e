import { setMember } from './value.ts';

/** A text, a number as text, or the name of a member. */
export interface FoundText {
  readonly kind: 'text' | 'number' | 'name';
  /** Its path of names and indexes; for a name, the path of its object. The array changes after the call. */
  readonly path: readonly (string | number)[];
  /** The name of the nearest member around it; `undefined` for a name, and at the top. */
  readonly label: string | undefined;
}

/** Returns the replacement of a text; the same text to keep it. */
export type ReplaceText = (text: string, found: FoundText) => Promise<string>;

/** Paths of members and items, in parts; `*` is any one name or index. */
export type Paths = readonly (readonly string[])[];

/**
 * Replaces texts, numbers and names of members in a JSON value. A number that is replaced becomes a text. The URLs of media parts are kept.
 * `value` is not changed; the result shares the parts in which nothing is replaced.
 *
 * @param except Parts that are not changed. Default: none.
 */
export async function replaceTexts<T>(value: T, replace: ReplaceText, except: Paths = []): Promise<T> {
  return (await new Walk(replace).replaced(value, except, undefined)) as T;
}

class Walk {
  readonly #replace: ReplaceText;
  readonly #path: (string | number)[] = [];

  constructor(replace: ReplaceText) {
    this.#replace = replace;
  }

  async replaced(value: unknown, except: Paths, label: string | undefined): Promise<unknown> {
    if (except.some((path) => path.length === 0)) return value;
    if (typeof value === 'string') return this.#replace(value, { kind: 'text', path: this.#path, label });
    if (typeof value === 'number') {
      const text = String(value);
      const replaced = await this.#replace(text, { kind: 'number', path: this.#path, label });
      return replaced === text ? value : replaced;
    }
    if (Array.isArray(value)) return this.#items(value, except, label);
    if (typeof value === 'object' && value !== null) return this.#members(value, except);
    return value;
  }

  async #items(items: unknown[], except: Paths, label: string | undefined): Promise<unknown[]> {
    let copy: unknown[] | undefined;
    for (const [index, item] of items.entries()) {
      const replaced = await this.#below(index, () => this.replaced(item, below(except, String(index)), label));
      if (replaced !== item) (copy ??= items.slice())[index] = replaced;
    }
    return copy ?? items;
  }

  async #members(members: object, except: Paths): Promise<object> {
    const copy = {};
    let changed = false;
    for (const [name, member] of Object.entries(members)) {
      const exceptMember = below(except, name);
      const isExcept = exceptMember.some((path) => path.length === 0);
      const newName = isExcept ? name : freeName(copy, await this.#name(name));
      const replaced = isMediaUrl(this.#path.at(-1), name, member)
        ? member
        : await this.#below(newName, () => this.replaced(member, exceptMember, name));
      changed ||= newName !== name || replaced !== member;
      setMember(copy, newName, replaced);
    }
    return changed ? copy : members;
  }

  #name(name: string): Promise<string> {
    return this.#replace(name, { kind: 'name', path: this.#path, label: undefined });
  }

  async #below<R>(token: string | number, walk: () => Promise<R>): Promise<R> {
    this.#path.push(token);
    const result = await walk();
    this.#path.pop();
    return result;
  }
}

/** Two names can be replaced by the same text, for example two spellings of an address. Both members are kept. */
export function freeName(members: object, name: string): string {
  let free = name;
  for (let copy = 2; Object.hasOwn(members, free); copy++) free = `${name} (${copy})`;
  return free;
}

/** The `url` of a Genkit media part, which is often a file. Any other text in its place is replaced. */
function isMediaUrl(parent: string | number | undefined, name: string, value: unknown): boolean {
  return (
    parent === 'media' && name === 'url' && typeof value === 'string' && /^[a-z][a-z\d+.-]{1,30}:\S+$/i.test(value)
  );
}

function below(except: Paths, token: string): Paths {
  return except.length === 0
    ? except
    : except.filter(([first]) => first === token || first === '*').map(([, ...rest]) => rest);
}
