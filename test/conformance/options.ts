import type { SessionStore, StoreCapabilities } from '../../src/store/contract.ts';
import type { SnapshotPathPrefix } from '../../src/store/tenant.ts';

/** How a test wants its store. */
export interface OpenOptions {
  /** Names the tenant of each call from its `context`. Absent: one tenant. */
  snapshotPathPrefix?: SnapshotPathPrefix;
  /** Lookups by `sessionId` of a session with more than one leaf are refused. Absent: `false`. */
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
   * After `a` and `b` were closed: a new store object on the same backend. May be absent of a store of another make that is not durable.
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

/** What `sessionStoreConformance` needs to know. */
export interface ConformanceOptions {
  /** Names the store in the tests' names. */
  name: string;
  /** Makes an empty backend and two stores on it. Called for each test, and often for each repetition within one. */
  open(options: OpenOptions): Promise<OpenStores>;
  /**
   * What the store says it is able to do: each ability is tested, and of each that is missing what happens instead. Absent for a
   * `SessionStore` of another make, of which Genkit's three methods are tested.
   */
  capabilities?: Readonly<StoreCapabilities>;
  /** What can be said of a store of another make. */
  foreign?: {
    /** It has `onSnapshotStateChange`; `true` unless told. */
    watch?: boolean;
    /** It outlives its process; `false` unless told. */
    durable?: boolean;
  };
  /** Whether `open` honours `snapshotPathPrefix`; `true` unless told. The whole suite then runs again under a tenant prefix. */
  tenants?: boolean;
  /** Whether `open` honours `rejectBranchingSessions`; `true` unless told. */
  rejectBranching?: boolean;
  /** Whence `describe` and `it` come; those of the global scope unless told. */
  runner?: Runner;
  /** Seed of everything random; the environment's `SEED` unless told, else 1. It is in the name of each test that uses it. */
  seed?: number;
  /** Multiplies how often repeated tests repeat; 1 unless told. Less for a slow backend. */
  effort?: number;
  /** Whether a failing random test looks for the smallest case that fails; `true` unless told. */
  shrink?: boolean;
  /** How long a watcher may take to be told, in ms; 10,000 unless told. */
  patienceMs?: number;
}
