import type { MemoryStore, MemoryStoreCapabilities } from '../../../src/store/memory/contract.ts';
import type { SnapshotPathPrefix } from '../../../src/store/name-tenant.ts';
import type { Runner } from '../options.ts';

/** How a test wants its memory store. */
export interface OpenMemoryOptions {
  /** Names the tenant of each call from its `context`. Default: one tenant. */
  pathPrefix?: SnapshotPathPrefix;
}

/** Two memory stores on one empty backend of their own. */
export interface OpenMemoryStores {
  /** One of them. */
  a: MemoryStore;
  /** A second store object on what `a` writes to. The same object as `a` where the medium can't be shared. */
  b: MemoryStore;
  /** After `a` and `b` were closed: a new store object on the same backend. Optional for a store that is not durable. */
  reopen?(): Promise<MemoryStore>;
  /**
   * Every byte that the backend holds, as text: what is removed must not be in it. Optional; without it removals are checked by reads alone.
   */
  dump?(): Promise<string>;
  /** Closes what was opened, unless the test did, and removes the backend. Called once. */
  close(): Promise<void>;
}

/** Options of `memoryStoreConformance`. */
export interface MemoryConformanceOptions {
  /** Names the store in the tests' names. */
  name: string;
  /** The store's own `capabilities`. */
  capabilities: Readonly<MemoryStoreCapabilities>;
  /** Whether `open` honours `pathPrefix`. Default: `false`. */
  tenants?: boolean;
  /** Makes an empty backend and two stores on it. Called for each test, and often for each repetition within one. */
  open(options: OpenMemoryOptions): Promise<OpenMemoryStores>;
  /** `describe` and `it` of your test runner. Default: those of the global scope. */
  runner?: Runner;
  /** Seed of everything random; it is in the name of each test that uses it. Default: the environment's `SEED`, else 1. */
  seed?: number;
  /** Multiplies how often repeated tests repeat; less than 1 for a slow backend. Default: 1. */
  effort?: number;
  /** The subjects to test, by their names. Default: all. */
  subjects?: readonly string[];
}
