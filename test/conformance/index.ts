import { aliasing } from './aliasing.ts';
import { atRandom } from './at-random.ts';
import { atomic } from './atomic.ts';
import { conditionalSaves } from './conditional-saves.ts';
import { globalRunner } from './global-runner.ts';
import { ids } from './ids.ts';
import { leafRule } from './leaf-rule.ts';
import { lineage } from './lineage.ts';
import { lists } from './lists.ts';
import { lookups } from './lookups.ts';
import { model } from './model.ts';
import type { ConformanceOptions } from './options.ts';
import { reopening } from './reopening.ts';
import { retention } from './retention.ts';
import { rewrites } from './rewrites.ts';
import { Kit, type Subject } from './support/kit.ts';
import { tenants } from './tenants.ts';
import { scopes } from './scopes.ts';
import { sessionRecords } from './session-records.ts';
import { terminal } from './terminal.ts';
import { values } from './values.ts';
import { watchers } from './watchers.ts';

export type { ConformanceOptions, OpenOptions, OpenStores, Runner, StoreManifest } from './options.ts';

const SUBJECTS: readonly Subject[] = [
  lookups,
  lineage,
  leafRule,
  terminal,
  atomic,
  rewrites,
  values,
  ids,
  tenants,
  atRandom,
  aliasing,
  watchers,
  lists,
  retention,
  conditionalSaves,
  scopes,
  sessionRecords,
  reopening,
  model,
];

/**
 * Defines the tests of the session store contract for one store: call it at the top level of a test file. The subjects that are about
 * names are defined a second time under a tenant prefix where the store has tenants.
 *
 * The manifest says what the store can do: all of that is tested, and the behaviour in place of what it can't.
 *
 * @throws Error when there are no `describe` and `it`, neither given nor global.
 *
 * @example
 * import { describe, it } from 'vitest';
 * import { InMemorySessionStore } from 'genkitx-agents';
 * import { sessionStoreConformance } from 'genkitx-agents/testing';
 *
 * sessionStoreConformance({
 *   name: 'InMemorySessionStore',
 *   runner: { describe, it },
 *   manifest: { capabilities: new InMemorySessionStore().capabilities, tenants: true, branching: true },
 *   open: async (options) => {
 *     const store = new InMemorySessionStore(options);
 *     return { a: store, b: store, reopen: async () => new InMemorySessionStore(options), close: () => store.close() };
 *   },
 * });
 */
export function sessionStoreConformance(options: ConformanceOptions): void {
  const runner = options.runner ?? globalRunner('sessionStoreConformance');
  const asked = SUBJECTS.filter(({ name }) => options.subjects?.includes(name) ?? true);
  const define = (title: string, subjects: readonly Subject[], underTenant: boolean): void => {
    const kit = new Kit(options, runner, underTenant);
    const fitting = subjects.filter((subject) => subject.isFor?.(kit) ?? true);
    if (fitting.length === 0) return;
    runner.describe(title, () => {
      for (const subject of fitting) runner.describe(subject.name, () => subject.tests(kit));
    });
  };
  const title = `${options.name} keeps the session store contract`;
  define(title, asked, false);
  const usingNames = asked.filter((subject) => subject.usesNames);
  if (options.manifest.tenants) define(`${title} under a tenant prefix`, usingNames, true);
}
