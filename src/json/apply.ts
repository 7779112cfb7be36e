import type { JsonPatch } from './diff.ts';
import { JsonValueError, shorten } from './fault.ts';
import { parsePointer } from './pointer.ts';
import { jsonBytes } from './size.ts';
import { copyJson, copyNested, getMember, inspectNested, jsonEqual, setMember } from './value.ts';

/** Options of {@link applyPatch}. */
export interface ApplyOptions {
  /**
   * How many bytes of JSON the `copy` operations of one patch may bring forth in all. Each can double the document, so
   * that a short patch could fill the memory. Default 16 MiB.
   */
  maxCopiedBytes?: number;
}

const DEFAULT_MAX_COPIED_BYTES = 16 * 1024 * 1024;

const MARK = Symbol.for('genkitx-agents.PatchError');

/** A patch that is malformed or does not fit the document. Nothing of it has been applied. */
export class PatchError extends Error {
  /** `PatchError`. */
  override readonly name = 'PatchError';
  /** The position of the refused operation in the patch; -1 when it is the patch itself that is no list. */
  readonly index: number;
  /** The `path` of the refused operation; empty when it has none. */
  readonly path: string;
  /** What is wrong with it. */
  readonly reason: string;
  /** @internal */
  readonly [MARK] = true;

  constructor(index: number, path: string, reason: string) {
    super(index < 0 ? `Bad patch: ${reason}.` : `Bad patch operation ${index} at "${shorten(path)}": ${reason}.`);
    this.index = index;
    this.path = path;
    this.reason = reason;
  }

  /** Like `instanceof`, but also true of an error made by another copy of this package in the process. */
  static isInstance(error: unknown): error is PatchError {
    return typeof error === 'object' && error !== null && MARK in error;
  }
}

/**
 * Applies a JSON Patch strictly by RFC 6902: every operation must fit, or nothing is applied. `document` is not changed,
 * and the result shares nothing with it nor with the patch. An absent document (`undefined`) can only be replaced or
 * added at the root.
 *
 * Keys such as `__proto__` are plain members of their own; nothing outside the result is ever written to.
 *
 * @throws PatchError when an operation is malformed, names a place that is not there, tests for something else, nests
 * deeper than `MAX_DEPTH`, or copies more than {@link ApplyOptions.maxCopiedBytes}.
 * @throws JsonValueError when `document` is not JSON.
 * @example
 * applyPatch({ turns: 1 }, [{ op: 'replace', path: '/turns', value: 2 }]); // { turns: 2 }
 */
export function applyPatch<T>(document: T, patch: JsonPatch, options: ApplyOptions = {}): T {
  const copy: unknown = document === undefined ? undefined : copyJson(document);
  return new Application(copy, 'own', options).run(patch) as T;
}

/**
 * {@link applyPatch} for documents that nobody ever changes: it copies only the containers on the changed paths and
 * shares all else with `document` and with the values in `patch`. Its cost is that of what the patch touches.
 */
export function applyShared<T>(document: T, patch: JsonPatch, options: ApplyOptions = {}): T {
  return new Application(document, 'shared', options).run(patch) as T;
}

type Tokens = readonly string[];

/** What is wrong with an operation; {@link Application} adds which one. */
class Refusal extends Error {}

function refuse(reason: string): never {
  throw new Refusal(reason);
}

class Application {
  #root: unknown;
  /** The containers that may be changed in place, because this application made them; `undefined` when it owns all. */
  readonly #owned: Set<object> | undefined;
  #copyableBytes: number;
  /** The last operation that moved something further down. */
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
      // Moves may nest a value ever deeper though no single one is deep. One look at the end is enough.
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
    else refuse('its "op" is none of add, remove, replace, move, copy and test');
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

  /** Answers what it removed. */
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
    if (this.#copyableBytes < 0) refuse('the patch copies more than it may; raise maxCopiedBytes if that is meant');
    this.#add(path, copyNested(value, path.length));
  }

  #test(path: Tokens, expected: unknown): void {
    if (!equalNumerically(this.#read(path), expected)) refuse('the value there is not the expected one');
  }

  /** The value of an operation, made ready to stand at `path`. */
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

  /** The container of the place that `path` names, free to be changed, as are those that lead to it. */
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
    if (typeof value !== 'object' || value === null) return refuse('it leads into a value that is no object or array');
    if (this.#owned === undefined || this.#owned.has(value)) return value;
    const own = Array.isArray(value) ? value.slice() : { ...value };
    this.#owned.add(own);
    return own;
  }
}

function childOf(parent: unknown, token: string): unknown {
  if (typeof parent !== 'object' || parent === null) return refuse('it leads into a value that is no object or array');
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
  return typeof pointer === 'string' ? parsePointer(pointer) : refuse(`its "${name}" is missing or no string`);
}

function valueOf(operation: object): unknown {
  const value = getMember(operation, 'value');
  return value === undefined ? refuse('its "value" is missing') : value;
}

/** Equality as RFC 6902 has it for `test`: numbers are compared by what they amount to, so `-0` is `0`. */
function equalNumerically(a: unknown, b: unknown): boolean {
  if (jsonEqual(a, b)) return true;
  const hasNegativeZero = [a, b].some((value) => inspectNested(value, 0).negativeZero);
  // `JSON.stringify` writes `-0` as `0`.
  return hasNegativeZero && jsonEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)));
}

/** Says where in the patch it went wrong; an error that the patch has no part in stays as it is. */
function patchErrorOf(error: unknown, index: number, operation: unknown): unknown {
  if (!(error instanceof Refusal || error instanceof SyntaxError || error instanceof JsonValueError)) return error;
  const path: unknown = typeof operation === 'object' && operation !== null ? getMember(operation, 'path') : undefined;
  return new PatchError(index, typeof path === 'string' ? path : '', error.message.replace(/\.$/, ''));
}
