import type { JsonPatch } from './diff.ts';
import { JsonValueError, shorten } from './fault.ts';
import { parsePointer } from './pointer.ts';
import { jsonBytes } from './size.ts';
import { copyJson, copyNested, getMember, inspectNested, jsonEqual, setMember } from './value.ts';

/** Options of {@link applyPatch}. */
export interface ApplyOptions {
  /**
   * How many bytes of JSON all `copy` operations of one patch may create. Each can double the document, so that a short
   * patch could fill the memory. Default: 16 MiB.
   */
  maxCopiedBytes?: number;
}

const DEFAULT_MAX_COPIED_BYTES = 16 * 1024 * 1024;

const MARK = Symbol.for('genkitx-agents.PatchError');

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
  readonly [MARK] = true;

  constructor(index: number, path: string, reason: string) {
    super(index < 0 ? `Bad patch: ${reason}.` : `Bad patch operation ${index} at "${shorten(path)}": ${reason}.`);
    this.index = index;
    this.path = path;
    this.reason = reason;
  }

  /** Like `instanceof`, but also true for errors of another copy of this package in the process. */
  static isInstance(error: unknown): error is PatchError {
    return typeof error === 'object' && error !== null && MARK in error;
  }
}

/**
 * Applies a JSON Patch strictly by RFC 6902: if one operation fails, none is applied. `document` is not changed, and the
 * result shares no objects with it or with the patch. An absent document (`undefined`) can only be replaced or added at
 * the root.
 *
 * Keys such as `__proto__` become plain own members; nothing outside the result is changed.
 *
 * @throws PatchError when an operation is malformed, its path does not exist, its test fails, the result is nested deeper
 * than `MAX_DEPTH`, or copies exceed {@link ApplyOptions.maxCopiedBytes}.
 * @throws JsonValueError when `document` is not JSON.
 * @example
 * applyPatch({ turns: 1 }, [{ op: 'replace', path: '/turns', value: 2 }]); // { turns: 2 }
 */
export function applyPatch<T>(document: T, patch: JsonPatch, options: ApplyOptions = {}): T {
  const copy: unknown = document === undefined ? undefined : copyJson(document);
  return new Application(copy, 'own', options).run(patch) as T;
}

/**
 * {@link applyPatch} for immutable documents: copies only the containers on the changed paths and shares the rest with
 * `document` and with the values in `patch`. Its cost is proportional to the changed containers.
 */
export function applyShared<T>(document: T, patch: JsonPatch, options: ApplyOptions = {}): T {
  return new Application(document, 'shared', options).run(patch) as T;
}

type Tokens = readonly string[];

/** The reason to refuse an operation; {@link Application} adds the index. */
class Refusal extends Error {}

function refuse(reason: string): never {
  throw new Refusal(reason);
}

class Application {
  #root: unknown;
  /** The containers that this application created and may change in place; `undefined` when it owns all. */
  readonly #owned: Set<object> | undefined;
  #copyableBytes: number;
  /** The last operation that moved a value deeper. */
  #deepened = -1;

  constructor(root: unknown, ownership: 'own' | 'shared', options: ApplyOptions) {
    this.#root = root;
    this.#owned = ownership === 'own' ? undefined : new Set();
    this.#copyableBytes = options.maxCopiedBytes ?? DEFAULT_MAX_COPIED_BYTES;
  }

  run(patch: JsonPatch): unknown {
    if (!Array.isArray(patch)) throw new PatchError(-1, '', 'it is not an array of operations');
    let index = 0;
    try {
      for (; index < patch.length; index++) this.#apply(patch[index], index);
      // Many moves together may nest a value too deep. One check at the end is enough.
      index = this.#deepened;
      if (index >= 0 && this.#root !== undefined) inspectNested(this.#root, 0);
    } catch (error) {
      throw patchErrorOf(error, index, patch[index]);
    }
    return this.#root;
  }

  #apply(operation: unknown, index: number): void {
    if (typeof operation !== 'object' || operation === null) refuse('an operation is an object');
    const op = getMember(operation, 'op');
    const path = pointerOf(operation, 'path');
    if (op === 'add') this.#add(path, this.#newValue(operation, path));
    else if (op === 'remove') this.#remove(path);
    else if (op === 'replace') this.#replace(path, this.#newValue(operation, path));
    else if (op === 'move') this.#move(pointerOf(operation, 'from'), path, index);
    else if (op === 'copy') this.#copy(pointerOf(operation, 'from'), path);
    else if (op === 'test') this.#test(path, valueOf(operation));
    else refuse('its "op" is not one of add, remove, replace, move, copy and test');
  }

  #add(path: Tokens, value: unknown): void {
    const key = path.at(-1);
    if (key === undefined) {
      this.#root = value;
      return;
    }
    const parent = this.#openParent(path);
    if (!Array.isArray(parent)) setMember(parent, key, value);
    else if (key === '-') parent.push(value);
    else parent.splice(arrayIndex(key, parent.length), 0, value);
  }

  /** Returns the removed value. */
  #remove(path: Tokens): unknown {
    const removed = this.#read(path);
    const key = path.at(-1);
    if (key === undefined) {
      this.#root = undefined;
      return removed;
    }
    const parent = this.#openParent(path);
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete (parent as Record<string, unknown>)[key];
    return removed;
  }

  #replace(path: Tokens, value: unknown): void {
    const key = path.at(-1);
    if (key === undefined) {
      this.#root = value;
      return;
    }
    const parent = this.#openParent(path);
    childOf(parent, key);
    setChild(parent, key, value);
  }

  #move(from: Tokens, path: Tokens, index: number): void {
    const leadsIntoItself = from.length < path.length && from.every((token, level) => token === path[level]);
    if (leadsIntoItself) refuse('a value cannot be moved into itself');
    this.#add(path, this.#remove(from));
    if (path.length > from.length) this.#deepened = index;
  }

  #copy(from: Tokens, path: Tokens): void {
    const value = this.#read(from);
    this.#copyableBytes -= jsonBytes(value, this.#copyableBytes);
    if (this.#copyableBytes < 0) refuse('the patch copies more than maxCopiedBytes; raise it if this is intended');
    this.#add(path, copyNested(value, path.length));
  }

  #test(path: Tokens, expected: unknown): void {
    if (!equalNumerically(this.#read(path), expected)) refuse('the value there is not the expected one');
  }

  /** The value of an operation, prepared for `path`. */
  #newValue(operation: object, path: Tokens): unknown {
    const value = valueOf(operation);
    if (this.#owned === undefined) return copyNested(value, path.length);
    inspectNested(value, path.length);
    return value;
  }

  #read(path: Tokens): unknown {
    if (this.#root === undefined) refuse('there is no document');
    return path.reduce(childOf, this.#root);
  }

  /** The container of the place at `path`. It and its ancestors may be changed in place. */
  #openParent(path: Tokens): object {
    let parent = this.#open(this.#root);
    this.#root = parent;
    for (const token of path.slice(0, -1)) {
      const child = this.#open(childOf(parent, token));
      setChild(parent, token, child);
      parent = child;
    }
    return parent;
  }

  #open(value: unknown): object {
    if (typeof value !== 'object' || value === null)
      return refuse('it leads into a value that is not an object or array');
    if (this.#owned === undefined || this.#owned.has(value)) return value;
    const own = Array.isArray(value) ? value.slice() : { ...value };
    this.#owned.add(own);
    return own;
  }
}

function childOf(parent: unknown, token: string): unknown {
  if (typeof parent !== 'object' || parent === null)
    return refuse('it leads into a value that is not an object or array');
  if (Array.isArray(parent)) return parent[arrayIndex(token, parent.length - 1)];
  const child = getMember(parent, token);
  return child === undefined ? refuse(`there is no member ${JSON.stringify(shorten(token))}`) : child;
}

function setChild(parent: object, token: string, child: unknown): void {
  if (Array.isArray(parent)) parent[Number(token)] = child;
  else setMember(parent, token, child);
}

function arrayIndex(token: string, last: number): number {
  if (!/^(?:0|[1-9]\d*)$/.test(token)) refuse(`${JSON.stringify(shorten(token))} is not an index of an array`);
  const index = Number(token);
  return index <= last ? index : refuse(`index ${shorten(token)} is beyond the end of the array`);
}

function pointerOf(operation: object, name: 'path' | 'from'): string[] {
  const pointer = getMember(operation, name);
  return typeof pointer === 'string' ? parsePointer(pointer) : refuse(`its "${name}" is missing or not a string`);
}

function valueOf(operation: object): unknown {
  const value = getMember(operation, 'value');
  return value === undefined ? refuse('its "value" is missing') : value;
}

/** Equality of RFC 6902 for `test`: numbers are compared numerically, so `-0` equals `0`. */
function equalNumerically(a: unknown, b: unknown): boolean {
  if (jsonEqual(a, b)) return true;
  const hasNegativeZero = [a, b].some((value) => inspectNested(value, 0).negativeZero);
  // `JSON.stringify` writes `-0` as `0`.
  return hasNegativeZero && jsonEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)));
}

/** Adds the position in the patch to the error; returns unrelated errors unchanged. */
function patchErrorOf(error: unknown, index: number, operation: unknown): unknown {
  if (!(error instanceof Refusal || error instanceof SyntaxError || error instanceof JsonValueError)) return error;
  const path: unknown = typeof operation === 'object' && operation !== null ? getMember(operation, 'path') : undefined;
  return new PatchError(index, typeof path === 'string' ? path : '', error.message.replace(/\.$/, ''));
}
