import type { SessionStore, StoreCapabilities } from '../../src/store/contract.ts';
import type { SnapshotPathPrefix } from '../../src/store/name-tenant.ts';

/** The options with which a test opens the stores. */
export interface OpenOptions {
  /** Names the tenant of each call from its `context`. Default: one tenant. */
  snapshotPathPrefix?: SnapshotPathPrefix;
  /** Whether to refuse lookups by `sessionId` if the session has more than one leaf. Default: `false`. */
  rejectBranchingSessions?: boolean;
}

/** Two stores on a new, empty backend. */
export interface OpenStores {
  /** The first store. */
  a: SessionStore;
  /**
   * A second store object on the same backend as `a`, for example another connection, so that concurrency is real. The same object as `a`
   * if the medium can't be shared.
   */
  b: SessionStore;
  /**
   * Opens a new store object on the same backend. Called after `a` and `b` were closed. Optional for a foreign store that is not durable.
   */
  reopen?(): Promise<SessionStore>;
  /** Closes the stores that the test did not close, and removes the backend. Called once. */
  close(): Promise<void>;
}

/** The functions of a test runner, for example of vitest, `node:test` or Jest. */
export interface Runner {
  /** Groups the tests that `body` defines. */
  describe(name: string, body: () => void): unknown;
  /** Defines a test, which fails if `body` rejects. */
  it(name: string, body: () => Promise<void>, timeoutMs?: number): unknown;
}

/** The features of the tested store. The suite tests each feature, and for each missing one the expected behaviour without it. */
export interface StoreManifest {
  /** The store's own `capabilities`. A missing capability counts as `false`. */
  capabilities: Readonly<Partial<StoreCapabilities>>;
  /** Whether `open` supports `snapshotPathPrefix`. Default: `false`. */
  tenants?: boolean;
  /** Whether `open` supports `rejectBranchingSessions`. Default: `false`. */
  branching?: boolean;
  /** Whether the store has only Genkit's methods. Then `close` and `scopes` are not tested. Default: `false`. */
  foreign?: boolean;
}

/** Options of `sessionStoreConformance`. */
export interface ConformanceOptions {
  /** The name of the store, for the names of the tests. */
  name: string;
  /** The features of the store. */
  manifest: StoreManifest;
  /** Makes an empty backend and two stores on it. Called for each test, and often for each repetition within a test. */
  open(options: OpenOptions): Promise<OpenStores>;
  /** `describe` and `it` of your test runner. Default: the global functions. */
  runner?: Runner;
  /** The seed of all random values. The name of each test that uses it contains it. Default: the environment variable `SEED`, else 1. */
  seed?: number;
  /** Multiplies the number of repetitions; less than 1 for a slow backend. Default: 1. */
  effort?: number;
  /** The subjects to test, by their names. Default: all. */
  subjects?: readonly string[];
  /** Whether a failing random test searches for the smallest failing case. Default: `true`. */
  shrink?: boolean;
  /** The time limit for the notification of a watcher, in ms. Default: 10,000. */
  watchTimeoutMs?: number;
}
