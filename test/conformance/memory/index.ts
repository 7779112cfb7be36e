import { globalRunner } from '../global-runner.ts';
import { commits } from './commits.ts';
import { isolation } from './isolation.ts';
import { jobs } from './jobs.ts';
import { memories } from './memories.ts';
import { model } from './model.ts';
import { notes } from './notes.ts';
import type { MemoryConformanceOptions } from './options.ts';
import { queries } from './queries.ts';
import { refusals } from './refusals.ts';
import { removal } from './removal.ts';
import { MemoryKit, type MemorySubject } from './support/kit.ts';

export type { MemoryConformanceOptions, OpenMemoryOptions, OpenMemoryStores } from './options.ts';

const SUBJECTS: readonly MemorySubject[] = [
  memories,
  queries,
  commits,
  notes,
  jobs,
  removal,
  isolation,
  refusals,
  model,
];

/**
 * Defines the tests of the memory store contract for one store. Call it at the top level of a test file.
 *
 * @throws Error if `runner` is missing and there are no global `describe` and `it`.
 *
 * @example
 * import { describe, it } from 'vitest';
 * import { InMemoryMemoryStore } from 'genkitx-agents/memory';
 * import { memoryStoreConformance } from 'genkitx-agents/testing';
 *
 * memoryStoreConformance({
 *   name: 'InMemoryMemoryStore',
 *   runner: { describe, it },
 *   capabilities: new InMemoryMemoryStore().capabilities,
 *   tenants: true,
 *   open: async (options) => {
 *     const store = new InMemoryMemoryStore(options);
 *     return { a: store, b: store, close: () => store.close() };
 *   },
 * });
 */
export function memoryStoreConformance(options: MemoryConformanceOptions): void {
  const runner = options.runner ?? globalRunner('memoryStoreConformance');
  const kit = new MemoryKit(options, runner);
  runner.describe(`${options.name} keeps the memory store contract`, () => {
    for (const subject of SUBJECTS) {
      if (options.subjects?.includes(subject.name) ?? true) runner.describe(subject.name, () => subject.tests(kit));
    }
  });
}
