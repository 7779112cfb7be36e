import { applyShared } from '../../../src/json/patch/apply-checked.ts';
import type { JsonPatch } from '../../../src/json/patch/diff.ts';
import { fill } from '../../chain/fill.ts';
import type { KnownState } from '../../chain/known-state.ts';
import type { WrittenState } from '../format/snapshot-file.ts';

/** Reads the parts of a chain. Errors of its methods end the walk. */
export interface ChainReader<Ref> {
  /** The stored state of `ref`. */
  read(ref: Ref): Promise<WrittenState<Ref>>;
  /** The texts of shards, by name. */
  shards(names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** The state of `ref`, if it is cached. */
  known(ref: Ref): KnownState | undefined;
}

/**
 * The state of a snapshot: walks back to a checkpoint or a known state, then applies the patches since. Reads at most one checkpoint.
 *
 * @returns `undefined` when the snapshot has no state.
 * @throws Errors of the reader; `Error` or `SyntaxError` when the parts do not fit together.
 */
export async function readChain<Ref>(ref: Ref, reader: ChainReader<Ref>): Promise<KnownState | undefined> {
  const newestFirst: JsonPatch[] = [];
  for (let at = ref; ;) {
    const known = reader.known(at);
    if (known) return patched(known, newestFirst);
    const written = await reader.read(at);
    if (written.kind === 'none') {
      if (newestFirst.length > 0) throw new Error('a patched snapshot has no state to start from');
      return undefined;
    }
    if (written.kind === 'whole') {
      const texts = await reader.shards([...new Set(written.lifts.flatMap((lift) => lift.shards))]);
      return patched(
        fill(written.skeleton, written.lifts, (name) => texts.get(name)!),
        newestFirst,
      );
    }
    newestFirst.push(written.patch);
    at = written.base;
  }
}

function patched(known: KnownState, newestFirst: readonly JsonPatch[]): KnownState {
  return { ...known, state: newestFirst.reduceRight((state, patch) => applyShared(state, patch), known.state) };
}
