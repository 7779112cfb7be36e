import type { SessionStore, StoreCapabilities } from '../../src/store/contract.ts';
import type { SnapshotPathPrefix } from '../../src/store/name-tenant.ts';

/** How a test wants its store. */
export interface OpenOptions {
  /** Names the tenant of each call from its `context`. Default: one tenant. */
  snapshotPathPrefix?: SnapshotPathPrefix;
  /** Lookups by `sessionId` of a session with more than one leaf are refused. Default: `false`. */
  rejectBranchingSessions?: boolean;
}

/** Two stores on one empty backend of their own. */
export interface OpenStores {
  /** One of them. */
  a: SessionStore;
  /**
   * A second store object on what `a` writes to, another connection say, so that concurrency is real. The same object as `a` where the
   * medium can't be shared.
   */
  b: SessionStore;
  /**
   * After `a` and `b` were closed: a new store object on the same backend. Optional for a foreign store that is not durable.
   */
  reopen?(): Promise<SessionStore>;
  /** Closes what was opened, unless the test did, and removes the backend. Called once. */
  close(): Promise<void>;
}

/** The functions of a test runner: those of vitest, of `node:test`, of Jest. */
export interface Runner {
  /** Groups the tests that `body` defines. */
  describe(name: string, body: () => void): unknown;
  /** Defines a test; it fails when `body` rejects. */
  it(name: string, body: () => Promise<void>, timeoutMs?: number): unknown;
}

/** The abilities of the store under test. Each ability is tested, and for each that is missing, the behaviour in its place. */
export interface StoreManifest {
  /** The store's own `capabilities`. A capability that is missing counts as `false`. */
  capabilities: Readonly<Partial<StoreCapabilities>>;
  /** Whether `open` honours `snapshotPathPrefix`. Default: `false`. */
  tenants?: boolean;
  /** Whether `open` honours `rejectBranchingSessions`. Default: `false`. */
  branching?: boolean;
  /** Whether the store has Genkit's methods only, so that nothing is asked about `close` and `scopes`. Default: `false`. */
  foreign?: boolean;
}

/** Options of `sessionStoreConformance`. */
export interface ConformanceOptions {
  /** Names the store in the tests' names. */
  name: string;
  /** What the store can do. */
  manifest: StoreManifest;
  /** Makes an empty backend and two stores on it. Called for each test, and often for each repetition within one. */
  open(options: OpenOptions): Promise<OpenStores>;
  /** `describe` and `it` of your test runner. Default: those of the global scope. */
  runner?: Runner;
  /** Seed of everything random; it is in the name of each test that uses it. Default: the environment's `SEED`, else 1. */
  seed?: number;
  /** Multiplies how often repeated tests repeat; less than 1 for a slow backend. Default: 1. */
  effort?: number;
  /** The subjects to test, by their names. Default: all. */
  subjects?: readonly string[];
  /** Whether a failing random test looks for the smallest case that fails. Default: `true`. */
  shrink?: boolean;
  /** How long a watcher may take to be notified, in ms. Default: 10,000. */
  watchTimeoutMs?: number;
}
