import { aliasing } from './snapshots/aliasing.ts';
import { atRandom } from './model/at-random.ts';
import { atomic } from './snapshots/atomic.ts';
import { conditionalSaves } from './snapshots/conditional-saves.ts';
import { globalRunner } from './global-runner.ts';
import { ids } from './snapshots/ids.ts';
import { leafRule } from './lineage/leaf-rule.ts';
import { lineage } from './lineage/lineage.ts';
import { lists } from './lineage/lists.ts';
import { lookups } from './lineage/lookups.ts';
import { model } from './model/model.ts';
import type { ConformanceOptions } from './options.ts';
import { reopening } from './lineage/reopening.ts';
import { retention } from './sessions/retention.ts';
import { rewrites } from './snapshots/rewrites.ts';
import { Kit, type Subject } from './support/kit.ts';
import { tenants } from './sessions/tenants.ts';
import { scopes } from './sessions/scopes.ts';
import { sessionRecords } from './sessions/session-records.ts';
import { terminal } from './snapshots/terminal.ts';
import { values } from './snapshots/values.ts';
import { watchers } from './lineage/watchers.ts';

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
 * Defines the tests of the session store contract for one store. Call it at the top level of a test file. If the store has tenants, the
 * subjects about names are defined a second time under a tenant prefix.
 *
 * The manifest lists the features of the store: the suite tests each feature, and for each missing one the expected behaviour without it.
 *
 * @throws Error if `runner` is missing and there are no global `describe` and `it`.
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
