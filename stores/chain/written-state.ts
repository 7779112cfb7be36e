import type { JsonPatch } from '../../src/json/patch/diff.ts';
import { stringifyJson, type Json } from '../../src/json/value.ts';
import type { CutMemory, Lift } from './cut.ts';

/**
 * A state as it is stored: a checkpoint (`whole`) or a reference to the state of another snapshot (`base`), and the patches to apply to it,
 * in order. `none`: the snapshot has no state.
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
  /** Approximate length of its JSON text. */
  readonly length: number;
}

/** JSON text of a patch. Each value is written by itself, so that the patch around it does not count against the depth limit. */
export function patchText(patch: JsonPatch): string {
  const operations = patch.map(({ op, path, value }) => {
    const head = `{"op":"${op}","path":${JSON.stringify(path)}`;
    return value === undefined ? `${head}}` : `${head},"value":${stringifyJson(value)}}`;
  });
  return `[${operations.join(',')}]`;
}
