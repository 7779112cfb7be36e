import type { JsonPatch } from '../../src/json/patch/diff.ts';
import { stringifyJson, type Json } from '../../src/json/value.ts';
import type { CutMemory, Lift } from './cut.ts';

/**
 * A state as it is written down: what it starts from, and patches to apply to that, in order. It starts from itself, cut up (`whole`), from
 * the state of another snapshot (`base`), or there is none.
 */
export type WrittenState<Ref> =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'whole';
      readonly skeleton: Json;
      readonly lifts: readonly Lift[];
      readonly patches: readonly JsonPatch[];
    }
  | { readonly kind: 'base'; readonly base: Ref; readonly patches: readonly JsonPatch[] };

/** A state in memory. It is immutable: other states share parts of it. */
export interface KnownState {
  readonly state: Json;
  /** Shards that hold parts of it. */
  readonly memory: CutMemory;
  /** Length of its JSON text, about. */
  readonly length: number;
}

/** JSON text of a patch. Operation by operation, because the patch around a deep value must not count against its depth. */
export function patchText(patch: JsonPatch): string {
  const operations = patch.map(({ op, path, value }) => {
    const head = `{"op":"${op}","path":${JSON.stringify(path)}`;
    return value === undefined ? `${head}}` : `${head},"value":${stringifyJson(value)}}`;
  });
  return `[${operations.join(',')}]`;
}
