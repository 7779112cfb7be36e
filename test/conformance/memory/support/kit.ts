import type { MemoryStore, MemoryStoreCapabilities } from '../../../../src/store/memory/contract.ts';
import { scale, seed } from '../../../support/scale.ts';
import type { Runner } from '../../options.ts';
import type { MemoryConformanceOptions, OpenMemoryOptions, OpenMemoryStores } from '../options.ts';

/** The stores of a test: two stores on one empty backend. */
export interface MemoryStage extends OpenMemoryStores {
  /** Returns the two stores in turn. */
  readonly next: () => MemoryStore;
}

/** A part of the contract and its tests. */
export interface MemorySubject {
  readonly name: string;
  tests(kit: MemoryKit): void;
}

/** Runs the tests of the subjects. */
export class MemoryKit {
  readonly capabilities: Readonly<MemoryStoreCapabilities>;
  readonly hasTenants: boolean;
  readonly seed: number;
  readonly #options: MemoryConformanceOptions;
  readonly #runner: Runner;

  constructor(options: MemoryConformanceOptions, runner: Runner) {
    this.#options = options;
    this.#runner = runner;
    this.capabilities = options.capabilities;
    this.hasTenants = options.tenants ?? false;
    this.seed = options.seed ?? seed;
  }

  /** Returns the number of repetitions of a test. */
  runs(short: number, long: number, least = 3): number {
    return Math.max(least, Math.round(scale(short, long) * (this.#options.effort ?? 1)));
  }

  /** Returns all of many similar cases; with an effort below 0.5, every eighth, chosen by the seed. */
  some<T>(cases: readonly T[]): readonly T[] {
    const step = (this.#options.effort ?? 1) < 0.5 ? 8 : 1;
    return cases.filter((_, i) => (i + this.seed) % step === 0);
  }

  test(name: string, body: (stage: MemoryStage) => Promise<void>, open: OpenMemoryOptions = {}): void {
    this.#runner.it(name, () => this.onStage(body, open), scale(120_000, 3_600_000));
  }

  /** Runs `body` on a new backend. */
  async onStage<T>(body: (stage: MemoryStage) => Promise<T>, open: OpenMemoryOptions = {}): Promise<T> {
    const stores = await this.#options.open(open);
    let calls = 0;
    try {
      return await body({ ...stores, next: () => (calls++ % 2 === 0 ? stores.a : stores.b) });
    } finally {
      await stores.close();
    }
  }
}
