import type { JsonPatch } from './diff.ts';
import { JsonValueError } from '../fault.ts';
import { Application, type ApplyOptions, type Prepare } from './apply-patch.ts';
import { copyJson, copyNested, inspectNested } from '../value.ts';

export { PatchError, type ApplyOptions } from './apply-patch.ts';

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
  return new Application(copy, options, copyChecked).run(patch) as T;
}

/**
 * {@link applyPatch} for immutable documents: copies only the containers on the changed paths and shares the rest with
 * `document` and with the values in `patch`. Its cost is proportional to the changed containers.
 */
export function applyShared<T>(document: T, patch: JsonPatch, options: ApplyOptions = {}): T {
  return new Application(document, options, copyChecked, takeChecked).run(patch) as T;
}

const copyChecked = refusing(copyNested);

const takeChecked = refusing((value, depth) => {
  inspectNested(value, depth);
  return value;
});

/** Turns the error for a value that is not JSON into a refusal of the patch. */
function refusing(prepare: Prepare): Prepare {
  return (value, depth) => {
    try {
      return prepare(value, depth);
    } catch (error) {
      throw error instanceof JsonValueError ? new SyntaxError(error.message.replace(/\.$/, '')) : error;
    }
  };
}
