import type * as genkit from 'genkit/beta';
import { expectTypeOf, test } from 'vitest';
import { applyPatch } from '../../../src/json/patch/apply-checked.ts';
import { diff, type JsonPatch, type JsonPatchOperation } from '../../../src/json/patch/diff.ts';

test('patches are of the types that Genkit has for them', () => {
  expectTypeOf<JsonPatchOperation>().toExtend<genkit.JsonPatchOperation>();
  expectTypeOf<genkit.JsonPatchOperation>().toExtend<JsonPatchOperation>();
  expectTypeOf<keyof JsonPatchOperation>().toEqualTypeOf<keyof genkit.JsonPatchOperation>();
  expectTypeOf<JsonPatch>().toExtend<genkit.JsonPatch>();
  expectTypeOf<genkit.JsonPatch>().toExtend<JsonPatch>();
});

test('diff and applyPatch can stand in for those of Genkit', () => {
  expectTypeOf(diff).toExtend<typeof genkit.diff>();
  expectTypeOf(applyPatch).toExtend<typeof genkit.applyPatch>();
});
