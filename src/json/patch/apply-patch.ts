import { isKind, KIND } from '../../error-kind.ts';
import { shorten } from '../fault.ts';
import type { JsonPatch } from './diff.ts';
import { parsePointer } from '../pointer.ts';
import { getMember, setMember } from '../value.ts';

/** Options of {@link applyPatch}. */
export interface ApplyOptions {
  /**
   * How many bytes of JSON all `copy` operations of one patch may create. Each can double the document, so that a short
   * patch could fill the memory. Default: 16 MiB.
   */
  maxCopiedBytes?: number;
}

const DEFAULT_MAX_COPIED_BYTES = 16 * 1024 * 1024;

/** A patch that is malformed or does not apply to the document. No part of it has been applied. */
export class PatchError extends Error {
  /** `PatchError`. */
  override readonly name = 'PatchError';
  /** The index of the refused operation in the patch; -1 when the patch is not an array. */
  readonly index: number;
  /** The `path` of the refused operation; empty when it has none. */
  readonly path: string;
  /** The reason. */
  readonly reason: string;
  /** @internal */
  readonly [KIND] = 'PatchError';

  constructor(index: number, path: string, reason: string) {
    super(index < 0 ? `Bad patch: ${reason}.` : `Bad patch operation ${index} at "${shorten(path)}": ${reason}.`);
    this.index = index;
    this.path = path;
    this.reason = reason;
  }

  /** Like `instanceof`, but also true for errors of another copy of this package in the process. */
  static isInstance(error: unknown): error is PatchError {
    return isKind(error, 'PatchError');
  }
}

/**
 * Prepares a value for a place inside `depth` containers.
 *
 * @throws SyntaxError when the patch is refused because of the value.
 */
export type Prepare = (value: unknown, depth: number) => unknown;

type Tokens = readonly string[];

/** The key of the document in its holder, the first token of every path here. The root is then a place like any other. */
const ROOT = 'document';

function refuse(reason: string): never {
  throw new SyntaxError(reason);
}

/** One run of a patch by RFC 6902. Copies the containers on the changed paths, once each, and shares the rest. */
export class Application {
  readonly #holder: { [ROOT]?: unknown };
  /** The containers that this application created and may change in place. */
  readonly #owned = new Set<object>();
  readonly #copy: Prepare;
  readonly #take: Prepare;
  #copyableBytes: number;
  /** The last operation that moved a value deeper. */
  #deepened = -1;

  /**
   * @param copy Prepares the values of `copy` operations.
   * @param take Prepares the values that the patch brings. Default: `copy`.
   */
  constructor(document: unknown, options: ApplyOptions, copy: Prepare, take = copy) {
    this.#holder = document === undefined ? {} : { [ROOT]: document };
    this.#owned.add(this.#holder);
    this.#copyableBytes = options.maxCopiedBytes ?? DEFAULT_MAX_COPIED_BYTES;
    this.#copy = copy;
    this.#take = take;
  }

  run(patch: JsonPatch): unknown {
    if (!Array.isArray(patch)) throw new PatchError(-1, '', 'it is not an array of operations');
    let index = 0;
    try {
      for (; index < patch.length; index++) this.#apply(patch[index], index);
      // Many moves together may nest a value too deep. One check at the end is enough.
      index = this.#deepened;
      if (index >= 0) this.#take(this.#holder[ROOT] ?? null, 0);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      const path = getMember(Object(patch[index]) as object, 'path');
      throw new PatchError(index, typeof path === 'string' ? path : '', error.message);
    }
    return this.#holder[ROOT];
  }

  #apply(operation: unknown, index: number): void {
    if (typeof operation !== 'object' || operation === null) refuse('an operation is an object');
    const op = getMember(operation, 'op');
    const path = tokensOf(operation, 'path');
    if (op === 'add') this.#add(path, this.#newValue(operation, path));
    else if (op === 'remove') this.#remove(path);
    else if (op === 'replace') this.#replace(path, this.#newValue(operation, path));
    else if (op === 'move') this.#move(tokensOf(operation, 'from'), path, index);
    else if (op === 'copy') this.#add(path, this.#copyOf(tokensOf(operation, 'from'), path));
    else if (op === 'test') this.#test(path, this.#newValue(operation, path));
    else refuse('its "op" is not one of add, remove, replace, move, copy and test');
  }

  #add(path: Tokens, value: unknown): void {
    const [parent, key] = this.#openParent(path);
    if (!Array.isArray(parent)) setMember(parent, key, value);
    else if (key === '-') parent.push(value);
    else parent.splice(mustBeIndex(key, parent.length), 0, value);
  }

  /** Returns the removed value. */
  #remove(path: Tokens): unknown {
    const [parent, key] = this.#openParent(path);
    const removed = childOf(parent, key);
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete (parent as Record<string, unknown>)[key];
    return removed;
  }

  #replace(path: Tokens, value: unknown): void {
    const [parent, key] = this.#openParent(path);
    // An absent document may be replaced.
    if (parent !== this.#holder) childOf(parent, key);
    setMember(parent, key, value);
  }

  #move(from: Tokens, path: Tokens, index: number): void {
    const leadsIntoItself = from.length < path.length && from.every((token, level) => token === path[level]);
    if (leadsIntoItself) refuse('a value cannot be moved into itself');
    this.#add(path, this.#remove(from));
    if (path.length > from.length) this.#deepened = index;
  }

  #copyOf(from: Tokens, path: Tokens): unknown {
    const value = this.#read(from);
    this.#copyableBytes -= new TextEncoder().encode(JSON.stringify(value)).length;
    if (this.#copyableBytes < 0) refuse('the patch copies more than maxCopiedBytes; raise it if this is intended');
    return this.#copy(value, path.length - 1);
  }

  #test(path: Tokens, expected: unknown): void {
    if (!isSame(this.#read(path), expected)) refuse('the value there is not the expected one');
  }

  /** The value of an operation, prepared for `path`. */
  #newValue(operation: object, path: Tokens): unknown {
    const value = getMember(operation, 'value');
    return value === undefined ? refuse('its "value" is missing') : this.#take(value, path.length - 1);
  }

  #read(path: Tokens): unknown {
    return path.reduce<unknown>(childOf, this.#holder);
  }

  /** The container of the place at `path`, and the key in it. The container and its ancestors may be changed in place. */
  #openParent(path: Tokens): [parent: object, key: string] {
    let parent: object = this.#holder;
    for (const token of path.slice(0, -1)) {
      const child = this.#open(childOf(parent, token));
      setMember(parent, token, child);
      parent = child;
    }
    return [parent, path.at(-1)!];
  }

  #open(value: unknown): object {
    const container = mustBeContainer(value);
    if (this.#owned.has(container)) return container;
    const own = Array.isArray(container) ? container.slice() : { ...container };
    this.#owned.add(own);
    return own;
  }
}

function mustBeContainer(value: unknown): object {
  return typeof value === 'object' && value !== null
    ? value
    : refuse('it leads into a value that is not an object or array');
}

function childOf(value: unknown, token: string): unknown {
  const parent = mustBeContainer(value);
  if (Array.isArray(parent)) return parent[mustBeIndex(token, parent.length - 1)];
  const child = getMember(parent, token);
  return child === undefined ? refuse(`there is no "${shorten(token)}"`) : child;
}

function mustBeIndex(token: string, last: number): number {
  const index = /^(?:0|[1-9]\d*)$/.test(token) ? Number(token) : Infinity;
  return index <= last ? index : refuse(`"${shorten(token)}" is not an index of the array, which ends at ${last}`);
}

function tokensOf(operation: object, name: 'path' | 'from'): string[] {
  const pointer = getMember(operation, name);
  return typeof pointer === 'string'
    ? [ROOT, ...parsePointer(pointer)]
    : refuse(`its "${name}" is missing or not a string`);
}

/** Equality of RFC 6902 for `test`: numbers are compared numerically, so `-0` equals `0`. An `undefined` member counts as absent. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => isSame(getMember(a, key), getMember(b, key)));
}
