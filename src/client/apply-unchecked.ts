import type { JsonPatch } from '../json/patch/diff.ts';
import { Application, type ApplyOptions } from '../json/patch/apply-patch.ts';
import { copyPlain } from '../json/plain.ts';

/**
 * Applies a JSON Patch strictly by RFC 6902: if one operation fails, none is applied. `document` is not changed, and the
 * result shares no objects with it or with the patch. An absent document (`undefined`) can only be replaced or added at
 * the root.
 *
 * Like the `applyPatch` of `genkitx-agents`, but only for values of `JSON.parse`: it checks neither that values are JSON, nor their depth.
 *
 * @throws PatchError when an operation is malformed, its path does not exist, its test fails, or copies exceed
 * {@link ApplyOptions.maxCopiedBytes}.
 * @example
 * applyPatch({ turns: 1 }, [{ op: 'replace', path: '/turns', value: 2 }]); // { turns: 2 }
 */
export function applyPatch<T>(document: T, patch: JsonPatch, options: ApplyOptions = {}): T {
  return patched(copyPlain(document), patch, options);
}

/** {@link applyPatch}, but the result shares its unchanged parts with `document`. */
export function patched<T>(document: T, patch: JsonPatch, options: ApplyOptions = {}): T {
  return new Application(document, options, (value) => copyPlain(value)).run(patch) as T;
}
