import { FOREIGN_CAPABILITIES, type StoreCapabilities } from '../../../src/store/contract.ts';
import { scale, seed } from '../../support/scale.ts';
import type { ConformanceOptions, OpenOptions, OpenStores, Runner } from '../options.ts';
import { eventually } from './assertions.ts';
import { Handle } from './handle.ts';

/** The handles of a test: two handles on one empty backend. */
export interface Stage {
  a: Handle;
  b: Handle;
  stores: OpenStores;
}

/** A part of the contract and its tests. */
export interface Subject {
  name: string;
  /** Whether the subject has tests for this store. Default: true. */
  isFor?(kit: Kit): boolean;
  /** Whether its tests are about names, so that they run again under a tenant prefix. Default: `false`. */
  usesNames?: boolean;
  tests(kit: Kit): void;
}

/** The tenant of the suite's second run. No file system or database accepts it without encoding. */
const TENANT = '../Tenant/é %2F\u0000';

const CALLER = { tenant: TENANT };

/** Runs the tests of the subjects. */
export class Kit {
  readonly capabilities: Readonly<StoreCapabilities>;
  /** Whether the tested store has only Genkit's three methods. */
  readonly isForeign: boolean;
  readonly seed: number;
  readonly watchTimeoutMs: number;
  readonly #options: ConformanceOptions;
  readonly #runner: Runner;
  readonly #underTenant: boolean;

  constructor(options: ConformanceOptions, runner: Runner, underTenant: boolean) {
    this.#options = options;
    this.#runner = runner;
    this.#underTenant = underTenant;
    this.isForeign = options.manifest.foreign ?? false;
    this.capabilities = { ...FOREIGN_CAPABILITIES, ...options.manifest.capabilities };
    this.seed = options.seed ?? seed;
    this.watchTimeoutMs = options.watchTimeoutMs ?? 10_000;
  }

  get hasTenants(): boolean {
    return this.#options.manifest.tenants ?? false;
  }

  get canRejectBranching(): boolean {
    return this.#options.manifest.branching ?? false;
  }

  get underTenant(): boolean {
    return this.#underTenant;
  }

  /** Returns the number of repetitions of a test, at least `least`. */
  runs(short: number, long: number, least = 3): number {
    return Math.max(least, Math.round(scale(short, long) * (this.#options.effort ?? 1)));
  }

  /** Whether the effort is below 0.05. Then long random cases are shorter. */
  get isBrief(): boolean {
    return (this.#options.effort ?? 1) < 0.05;
  }

  /** Returns all of many similar cases; with an effort below 0.05, every eighth, chosen by the seed. */
  some<T>(cases: readonly T[]): readonly T[] {
    const step = this.isBrief ? 8 : 1;
    return cases.filter((_, i) => (i + this.seed) % step === 0);
  }

  /** Returns the parameters of a fast-check run. The names of such tests contain the seed. */
  property(short: number, long: number): { seed: number; numRuns: number; endOnFailure: boolean } {
    const numRuns = this.runs(short, long, this.isBrief ? 1 : 3);
    return { seed: this.seed, numRuns, endOnFailure: !(this.#options.shrink ?? true) };
  }

  test(name: string, body: (stage: Stage) => Promise<void>, open: OpenOptions = {}): void {
    const timeoutMs = scale(120_000, 3_600_000);
    this.#runner.it(name, () => this.onStage(body, open), timeoutMs);
  }

  /** Defines one of two tests: of a feature, or of the behaviour without it. */
  either(
    ability: keyof StoreCapabilities,
    withIt: { name: string; body: (stage: Stage) => Promise<void>; open?: OpenOptions },
    without: { name: string; body: (stage: Stage) => Promise<void> },
  ): void {
    const { name, body, open } = this.capabilities[ability] ? withIt : { ...without, open: {} };
    this.test(name, body, open);
  }

  /** Runs `body` on a new backend. */
  async onStage<T>(body: (stage: Stage) => Promise<T>, open: OpenOptions = {}): Promise<T> {
    const prefix = this.#underTenant ? { snapshotPathPrefix: tenantOfContext } : {};
    const stores = await this.#options.open({ ...prefix, ...open });
    const [a, b] = [this.handle(stores.a), this.handle(stores.b)];
    try {
      return await body({ a, b, stores });
    } finally {
      for (const handle of [a, b]) handle.endWatching();
      await stores.close();
    }
  }

  handle(store: OpenStores['a']): Handle {
    return new Handle(store, this.#underTenant ? CALLER : undefined);
  }

  /** Waits until `check` is true. */
  eventually(check: () => boolean | Promise<boolean>, what: string): Promise<void> {
    return eventually(check, this.watchTimeoutMs, what);
  }

  /** Options for a stage on which {@link Handle.as} chooses the tenant. */
  get manyTenants(): OpenOptions {
    return { snapshotPathPrefix: tenantOfContext };
  }
}

/** The prefix function of the tests: the caller's context names the tenant. */
function tenantOfContext(options?: { context?: Record<string, unknown> }): string {
  return options?.context?.['tenant'] as string;
}
