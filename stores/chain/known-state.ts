import type { Json } from '../../src/json/value.ts';
import type { CutMemory } from './cut.ts';

/** A state in memory. It is immutable: other states share parts of it. */
export interface KnownState {
  readonly state: Json;
  /** Shards that hold parts of it. */
  readonly memory: CutMemory;
  /** Approximate length of its JSON text. */
  readonly length: number;
}
