import { randomBytes } from 'node:crypto';
import type { Checkpoint } from './checkpoint.ts';

/** Names one state of one snapshot, in all time and in all databases: what is known of it never becomes wrong. */
export type Token = string;

export function newToken(): Token {
  return randomBytes(12).toString('base64url');
}

/** A whole state as it is in a document: in the document, or, when it is too large for that, in shards. */
export interface StoredCheckpoint {
  readonly bytes?: Buffer;
  readonly shards?: readonly string[];
  /** What is stored, once it was read. */
  checkpoint?: Checkpoint;
}

/** How to get to a state: a whole one, and what changed since. Knows nothing of the snapshots on the way. */
export interface StateChain {
  readonly base: StoredCheckpoint;
  /** That of the whole state, then one for each patch; the last names the state that the chain leads to. */
  readonly tokens: readonly Token[];
  /** Packed patches, oldest first. */
  readonly patches: readonly Buffer[];
}

export function endOf(chain: StateChain): Token {
  return chain.tokens.at(-1)!;
}

/** The chain to an earlier state of it; `undefined` when that is not on it. */
export function chainTo(chain: StateChain | undefined, token: Token): StateChain | undefined {
  const at = chain ? chain.tokens.indexOf(token) : -1;
  if (!chain || at < 0) return undefined;
  if (at === chain.tokens.length - 1) return chain;
  return { base: chain.base, tokens: chain.tokens.slice(0, at + 1), patches: chain.patches.slice(0, at) };
}

export function extended(chain: StateChain, tokens: readonly Token[], patches: readonly Buffer[]): StateChain {
  return { base: chain.base, tokens: [...chain.tokens, ...tokens], patches: [...chain.patches, ...patches] };
}

/** Bytes of what changed since the whole state. */
export function patchBytes(chain: StateChain): number {
  return chain.patches.reduce((sum, patch) => sum + patch.length, 0);
}
