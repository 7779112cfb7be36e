import type { Checkpoint } from './checkpoint.ts';

/** A stored checkpoint: in the document itself, or in shards if it is too large for that. */
export interface StoredCheckpoint {
  readonly bytes?: Buffer;
  readonly shards?: readonly string[];
  /** Its content, once it was read. */
  checkpoint?: Checkpoint;
}

/** The chain to a state: a checkpoint, and the diffs since. */
export interface StateChain {
  readonly base: StoredCheckpoint;
  /** The place of the snapshot that holds the whole state in its session's order. */
  readonly from: number;
  /** Names of the states: the checkpoint's, then the state's after each patch. Names are random, and never used for another state. */
  readonly names: readonly string[];
  /** Packed patches, oldest first. */
  readonly patches: readonly Buffer[];
}

/** The name of the state that a chain leads to. */
export function endOf(chain: StateChain): string {
  return chain.names.at(-1)!;
}

/** The part of the chain up to one of its states; `undefined` if the chain does not have that state. */
export function chainTo(chain: StateChain | undefined, name: string | undefined): StateChain | undefined {
  const at = chain && name !== undefined ? chain.names.indexOf(name) : -1;
  if (!chain || at < 0) return undefined;
  const { base, from, names, patches } = chain;
  return { base, from, names: names.slice(0, at + 1), patches: patches.slice(0, at) };
}

export function extended({ base, from, names, patches }: StateChain, name: string, patch: Buffer): StateChain {
  return { base, from, names: [...names, name], patches: [...patches, patch] };
}

/** Bytes of the patches. */
export function patchBytes(chain: StateChain): number {
  return chain.patches.reduce((sum, patch) => sum + patch.length, 0);
}
