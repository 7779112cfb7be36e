/** Tests the suite itself: runs it on stores that break one rule each. */
import { describe, expect, it } from 'vitest';
import { InMemoryMemoryStore } from '../../../stores/in-memory/memory/in-memory-memory-store.ts';
import { caughtBy, runSuite } from '../support/run-suite.ts';
import { memoryStoreConformance } from './index.ts';
import type { MemoryConformanceOptions, OpenMemoryOptions } from './options.ts';
import type { MemoryStore } from '../../../src/store/memory/contract.ts';
import { MEMORY_MUTANTS } from './support/mutants.ts';

function suiteOf(
  make: (options: OpenMemoryOptions) => MemoryStore & { dump?: () => Promise<string> },
): MemoryConformanceOptions {
  return {
    seed: 1,
    effort: 0.05,
    name: 'the store under test',
    capabilities: new InMemoryMemoryStore().capabilities,
    tenants: true,
    open: async (options) => {
      const store = make(options);
      return { a: store, b: store, close: () => store.close(), ...(store.dump && { dump: store.dump }) };
    },
  };
}

describe('the suite of memory stores', () => {
  it('passes the correct store from which the faulty ones are made', async () => {
    const results = await runSuite(
      suiteOf((options) => new InMemoryMemoryStore(options)),
      memoryStoreConformance,
    );
    expect(results.length).toBeGreaterThan(40);
    expect(results.filter((result) => 'error' in result)).toEqual([]);
  });

  it('has at least 15 faulty stores', () => {
    expect(new Set(MEMORY_MUTANTS.map(({ fault }) => fault)).size).toBeGreaterThanOrEqual(15);
  });

  it.each(MEMORY_MUTANTS)('catches a store that $fault, in "$subject"', async ({ subject, ...mutant }) => {
    const options = { ...suiteOf((open) => mutant.make(open)), effort: 0.5, subjects: [subject] };
    expect(caughtBy(await runSuite(options, memoryStoreConformance))).toEqual([subject]);
  });
});
