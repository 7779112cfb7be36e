import { alignEqual } from './align.ts';
import { countEqual } from '../count-same.ts';
import { findFault, isPlain, JsonValueError } from '../fault.ts';
import { escapeToken } from '../pointer.ts';
import { jsonBytes, jsonStringBytes } from '../size.ts';
import { copyNested, getMember, jsonEqual } from '../value.ts';

/** One operation of a JSON Patch (RFC 6902). */
export interface JsonPatchOperation {
  /** The operation at `path`; {@link diff} creates the first three only. */
  op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  /** RFC 6901 pointer to the place that is changed or tested, `/messages/0` for instance. */
  path: string;
  /** RFC 6901 pointer to the source; `move` and `copy` have it. */
  from?: string;
  /** The new or expected value; `add`, `replace` and `test` have it. */
  value?: unknown;
}

/** A JSON Patch (RFC 6902): operations, applied one after the other. */
export type JsonPatch = JsonPatchOperation[];

/** The edit of one place. A leaf's value is a copy; `to` of nested edits is the caller's object. */
type Change =
  | { readonly kind: 'remove' }
  | { readonly kind: 'add' | 'replace'; readonly value: unknown }
  | { readonly kind: 'edit'; readonly to: object; readonly edits: readonly Edit[] };

/** A change of a member or an element. The indices of an array's edits are valid when the edits are applied in order. */
interface Edit {
  readonly token: string | number;
  readonly change: Change;
}

/** A deeper difference replaces the container at this depth. Bounds the recursion and the length of paths. */
const DEEPEST_EDIT = 200;

/** Genkit's clients refuse a path with one of these. */
const REFUSED_TOKENS: ReadonlySet<string | number> = new Set(['__proto__', 'prototype', 'constructor']);

const REMOVE_BYTES = '{"op":"remove","path":""},'.length;
const ADD_BYTES = '{"op":"add","path":"","value":},'.length;
const REPLACE_BYTES = '{"op":"replace","path":"","value":},'.length;

/**
 * The patch that turns `from` into `to`, of `add`, `remove` and `replace` operations; empty when both are equal.
 *
 * Each object and array gets the smaller edit as JSON: the operations inside it, or one `replace` of it. Equal parts cost one comparison;
 * parts that are the same object in both are not compared. Elements of arrays are aligned, so that a patch for elements dropped from the
 * head and appended at the end contains only those. A change below a member named `__proto__`, `prototype` or `constructor` replaces the
 * nearest container whose path has no such name, because Genkit's clients refuse such paths.
 *
 * Members that are `undefined` count as absent, and so does a whole document: `diff(undefined, to)` is a `replace` at the
 * root, `diff(from, undefined)` a `remove` of it. The values in the patch are copies.
 *
 * @throws JsonValueError when a new value in `to` is not JSON.
 * @example
 * diff({ turns: 1, topic: 'the order that never came' }, { turns: 2, topic: 'the order that never came' });
 * // [{ op: 'replace', path: '/turns', value: 2 }]
 */
export function diff(from: unknown, to: unknown): JsonPatch {
  if (to === undefined) return from === undefined ? [] : [{ op: 'remove', path: '' }];
  const patch: JsonPatch = [];
  try {
    const change = changeBetween(from, to, 0);
    if (change !== undefined) emit(chooseSmaller(change, 0, 0).change, '', patch);
  } catch (error) {
    if (error instanceof JsonValueError) throw findFault(to) ?? error;
    throw error;
  }
  return patch;
}

// The first pass finds the differences; the second, from the innermost outwards, chooses edits or a replacement for each.

function changeBetween(from: unknown, to: unknown, depth: number): Change | undefined {
  if (depth < DEEPEST_EDIT && from !== to && isContainer(from) && isContainer(to)) {
    if (Array.isArray(from) && Array.isArray(to)) return arrayChange(from, to, depth);
    if (!Array.isArray(from) && !Array.isArray(to)) return objectChange(from, to, depth);
  }
  return jsonEqual(from, to) ? undefined : { kind: 'replace', value: copyNested(to, depth) };
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null && isPlain(value);
}

function objectChange(from: object, to: object, depth: number): Change | undefined {
  const edits: Edit[] = [];
  for (const key of Object.keys(from)) {
    const before = getMember(from, key);
    if (before === undefined) continue;
    const after = getMember(to, key);
    const change: Change | undefined =
      after === undefined ? { kind: 'remove' } : changeBetween(before, after, depth + 1);
    if (change !== undefined) edits.push({ token: key, change });
  }
  for (const key of Object.keys(to)) {
    const after = getMember(to, key);
    if (after === undefined || getMember(from, key) !== undefined) continue;
    edits.push({ token: key, change: { kind: 'add', value: copyNested(after, depth + 1) } });
  }
  return edits.length === 0 ? undefined : { kind: 'edit', to, edits };
}

function arrayChange(from: readonly unknown[], to: readonly unknown[], depth: number): Change | undefined {
  const shorter = Math.min(from.length, to.length);
  const head = countEqual(from, to);
  if (head === from.length && head === to.length) return undefined;
  let tail = 0;
  while (tail < shorter - head && jsonEqual(from[from.length - 1 - tail], to[to.length - 1 - tail])) tail++;
  return { kind: 'edit', to, edits: middleEdits(from, to, head, tail, depth) };
}

/** The edits of two arrays whose first `head` and last `tail` elements are equal. */
function middleEdits(
  from: readonly unknown[],
  to: readonly unknown[],
  head: number,
  tail: number,
  depth: number,
): Edit[] {
  const fromEnd = from.length - tail;
  const toEnd = to.length - tail;
  const alignable = fromEnd - head > 1 || toEnd - head > 1;
  const matches = alignable ? alignEqual(from.slice(head, fromEnd), to.slice(head, toEnd)) : [];
  const edits: Edit[] = [];
  let i = head;
  let j = head;
  for (const match of [...matches, { i: fromEnd - head, j: toEnd - head }]) {
    // Between two matches, elements count as changed in pairs, and the rest as removed or added.
    for (; i < head + match.i && j < head + match.j; i++, j++) {
      const change = changeBetween(from[i], to[j], depth + 1);
      if (change !== undefined) edits.push({ token: j, change });
    }
    for (; i < head + match.i; i++) edits.push({ token: j, change: { kind: 'remove' } });
    for (; j < head + match.j; j++) {
      edits.push({ token: i === from.length ? '-' : j, change: { kind: 'add', value: copyNested(to[j], depth + 1) } });
    }
    i++;
    j++;
  }
  return edits;
}

interface SizedChange {
  readonly change: Change;
  /** The size of its operations in the patch, in UTF-8 bytes. */
  readonly bytes: number;
}

/** Decides for a change whose path takes `pathBytes`, and for each inside it, whether its edits or one `replace` is smaller. */
function chooseSmaller(change: Change, pathBytes: number, depth: number): SizedChange {
  if (change.kind === 'remove') return { change, bytes: REMOVE_BYTES + pathBytes };
  if (change.kind !== 'edit') {
    const operationBytes = change.kind === 'add' ? ADD_BYTES : REPLACE_BYTES;
    return { change, bytes: operationBytes + pathBytes + jsonBytes(change.value) };
  }
  const { to } = change;
  const replaced = (): Change => ({ kind: 'replace', value: copyNested(to, depth) });
  if (change.edits.some((edit) => REFUSED_TOKENS.has(edit.token))) {
    return chooseSmaller(replaced(), pathBytes, depth);
  }
  let bytes = 0;
  const edits = change.edits.map((edit) => {
    const chosen = chooseSmaller(edit.change, pathBytes + tokenBytes(edit.token), depth + 1);
    bytes += chosen.bytes;
    return { token: edit.token, change: chosen.change };
  });
  const replaceBytes = REPLACE_BYTES + pathBytes;
  const whole = replaceBytes + jsonBytes(to, bytes - replaceBytes);
  return whole < bytes ? { change: replaced(), bytes: whole } : { change: { kind: 'edit', to, edits }, bytes };
}

function tokenBytes(token: string | number): number {
  return typeof token === 'number' ? 1 + String(token).length : jsonStringBytes(escapeToken(token)) - 1;
}

function emit(change: Change, path: string, patch: JsonPatch): void {
  if (change.kind === 'remove') patch.push({ op: 'remove', path });
  else if (change.kind !== 'edit') patch.push({ op: change.kind, path, value: change.value });
  else {
    for (const edit of change.edits) emit(edit.change, `${path}/${escapeToken(String(edit.token))}`, patch);
  }
}
