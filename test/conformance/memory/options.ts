import type { MemoryStore, MemoryStoreCapabilities } from '../../../src/store/memory/contract.ts';
import type { SnapshotPathPrefix } from '../../../src/store/name-tenant.ts';
import type { Runner } from '../options.ts';

/** The options with which a test opens the memory stores. */
export interface OpenMemoryOptions {
  /** Names the tenant of each call from its `context`. Default: one tenant. */
  pathPrefix?: SnapshotPathPrefix;
}

/** Two memory stores on a new, empty backend. */
export interface OpenMemoryStores {
  /** The first store. */
  a: MemoryStore;
  /** A second store object on the same backend as `a`. The same object as `a` if the medium can't be shared. */
  b: MemoryStore;
  /** Opens a new store object on the same backend. Called after `a` and `b` were closed. Optional for a store that is not durable. */
  reopen?(): Promise<MemoryStore>;
  /**
   * Returns all bytes of the backend as text, which must not contain removed data. Optional; without it, removals are only checked by
   * reads.
   */
  dump?(): Promise<string>;
  /** Closes the stores that the test did not close, and removes the backend. Called once. */
  close(): Promise<void>;
}

/** Options of `memoryStoreConformance`. */
export interface MemoryConformanceOptions {
  /** The name of the store, for the names of the tests. */
  name: string;
  /** The store's own `capabilities`. */
  capabilities: Readonly<MemoryStoreCapabilities>;
  /** Whether `open` supports `pathPrefix`. Default: `false`. */
  tenants?: boolean;
  /** Makes an empty backend and two stores on it. Called for each test, and often for each repetition within a test. */
  open(options: OpenMemoryOptions): Promise<OpenMemoryStores>;
  /** `describe` and `it` of your test runner. Default: the global functions. */
  runner?: Runner;
  /** The seed of all random values. The name of each test that uses it contains it. Default: the environment variable `SEED`, else 1. */
  seed?: number;
  /** Multiplies the number of repetitions; less than 1 for a slow backend. Default: 1. */
  effort?: number;
  /** The subjects to test, by their names. Default: all. */
  subjects?: readonly string[];
}
