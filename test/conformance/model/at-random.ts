import * as fc from 'fast-check';
import { anyCharacter } from '../../support/any-character.ts';
import { equal, show } from '../support/assertions.ts';
import { HOSTILE_IDS } from '../support/hostile-ids.ts';
import type { Kit, Subject } from '../support/kit.ts';
import { snapshot } from '../support/snapshots.ts';
import { VALUES } from '../support/value-corpus.ts';

/** Names that combine hostile names and characters with a special meaning in some store. */
const name = fc
  .array(
    fc.oneof(
      fc.constantFrom(...HOSTILE_IDS.filter(({ length }) => length < 20)),
      fc.constantFrom('/', '..', '\\', '%', '.', '~', ' ', '\u0000', 'a', 'A'),
      fc.string({ unit: anyCharacter, maxLength: 6 }),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((pieces) => pieces.join(''))
  .filter((text) => text.trim() !== '');

/** JSON values with such names as keys. Values that are not JSON have their own tests. */
const value = fc
  .letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.jsonValue({ maxDepth: 1 }),
      fc.constantFrom(...VALUES.map(([, known]) => known)),
      fc.array(tie('tree'), { maxLength: 6 }),
      fc.dictionary(name, tie('tree'), { maxKeys: 6 }),
    ),
  }))
  .tree.map((tree) => JSON.parse(JSON.stringify(tree)) as unknown);

/** The number of snapshots at once, or in one session. */
const GROUP = 50;

/** Random names and values. */
export const atRandom: Subject = {
  name: 'at random',
  tests(kit) {
    names(kit);
    if (kit.hasTenants) prefixes(kit);
    values(kit);
  },
};

function sample<T>(kit: Kit, arbitrary: fc.Arbitrary<T>, runs: number): T[] {
  return fc.sample(arbitrary, { seed: kit.seed, numRuns: runs });
}

async function inGroups<T>(items: readonly T[], work: (item: T, index: number) => Promise<void>): Promise<void> {
  for (let start = 0; start < items.length; start += GROUP) {
    await Promise.all(items.slice(start, start + GROUP).map((item, i) => work(item, start + i)));
  }
}

function names(kit: Kit): void {
  const runs = kit.runs(50, 10_000);
  kit.test(
    `hostile ids: ${runs} random names name a snapshot and a session each (seed ${kit.seed})`,
    async ({ a, b }) => {
      const ids = [...new Set(sample(kit, name, runs))];
      await inGroups(ids, async (id, i) => void (await a.save(id, snapshot({ sessionId: id, custom: { i } }))));
      await inGroups(ids, async (id, i) => {
        const { sessionId, state } = await b.mustGet(id);
        equal([sessionId, state?.custom, await b.leafId(id)], [id, { i }, id], show(id));
      });
    },
  );
}

function prefixes(kit: Kit): void {
  const runs = kit.runs(20, 10_000);
  kit.test(
    `tenant fence: ${runs} random prefixes see their own data only (seed ${kit.seed})`,
    async ({ a, b }) => {
      const tenants = [...new Set(sample(kit, name, runs))];
      await inGroups(tenants, async (tenant, i) => {
        equal(await a.as(tenant).bySession('same'), undefined, `${show(tenant)} before its first save`);
        await a.as(tenant).save(`own ${i}`, snapshot({ sessionId: 'same', custom: { i } }));
      });
      await inGroups(tenants, async (tenant, i) => {
        equal((await b.as(tenant).bySession('same'))?.state?.custom, { i }, show(tenant));
        equal(await b.as(tenant).byId(`own ${i === 0 ? 1 : 0}`), undefined, `another’s, to ${show(tenant)}`);
      });
    },
    kit.manyTenants,
  );
}

function values(kit: Kit): void {
  const runs = kit.runs(50, 10_000);
  kit.test(
    `values: ${runs} random values with hostile keys come back, each as a change of the previous one (seed ${kit.seed})`,
    async ({ a, b }) => {
      const customs = sample(kit, value, runs);
      for (const [i, custom] of customs.entries()) {
        const parent = i % GROUP === 0 ? {} : { parentId: `value ${i - 1}` };
        await a.save(
          `value ${i}`,
          snapshot({ sessionId: `session ${Math.floor(i / GROUP)}`, ...parent, custom: { value: custom } }),
        );
      }
      await inGroups(customs, async (custom, i) => {
        equal((await b.mustGet(`value ${i}`)).state?.custom, { value: custom }, `value ${i}: ${show(custom)}`);
      });
      equal(({} as { polluted?: unknown }).polluted, undefined, 'Object.prototype');
    },
  );
}
