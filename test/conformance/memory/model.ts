import * as fc from 'fast-check';
import type { MemoryOperation, MemoryScopeId, MemoryStore } from '../../../src/store/memory/contract.ts';
import { equal } from '../support/assertions.ts';
import { forAll } from '../support/for-all.ts';
import { ADA, BOB, draft, isoOf, note, source, START } from './support/drafts.ts';
import type { MemoryStage, MemorySubject } from './support/kit.ts';
import { ReferenceStore } from './support/reference-store.ts';

const SCOPES: readonly MemoryScopeId[] = [ADA, BOB, { scope: 'app', appName: 'shop' }];
const IDS = ['one', 'two', 'three', 'Ω'];
const KINDS = ['profile', 'index/words', 'source'];

const memory = fc.record({
  id: fc.constantFrom(...IDS),
  text: fc.constantFrom('a', 'b'),
  confidence: fc.constantFrom(0, 0.5, 1),
  topics: fc.subarray(['t', 'u']),
  validTo: fc.option(fc.constantFrom('2000-01-01T00:00:00Z', '2999-01-01T00:00:00Z'), { nil: undefined }),
  source: fc.constantFrom('chat-1', 'chat-2'),
});

const operation: fc.Arbitrary<MemoryOperation> = fc.oneof(
  {
    weight: 5,
    arbitrary: memory.map(({ id, source: from, validTo, ...rest }): MemoryOperation => {
      const members = { ...rest, sources: [source(from)], ...(validTo !== undefined && { validTo }) };
      return { op: 'put', memory: draft(id, members) };
    }),
  },
  { weight: 1, arbitrary: fc.constantFrom(...IDS).map((id): MemoryOperation => ({ op: 'remove', id })) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...KINDS), fc.constantFrom('x', 'y'), fc.option(fc.nat(9), { nil: undefined }))
      .map(([kind, key, value]) => note(kind, key, value)),
  },
);

/** Names the target of an operation. A commit has at most one operation for each target. */
const subjectOf = (one: MemoryOperation): string =>
  one.op === 'note' ? `${one.kind} ${one.key}` : `${one.op} ${one.op === 'put' ? one.memory.id : one.id}`;

const step = fc.record({
  scope: fc.constantFrom(...SCOPES),
  operations: fc.option(fc.uniqueArray(operation, { minLength: 1, maxLength: 4, selector: subjectOf }), {
    nil: undefined,
    freq: 20,
  }),
  onB: fc.boolean(),
  since: fc.nat(12),
});

async function play(
  { a, b }: MemoryStage,
  steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[],
): Promise<void> {
  const reference = new ReferenceStore();
  for (const [i, { scope, operations, onB, since }] of steps.entries()) {
    const [store, other] = onB ? [b, a] : [a, b];
    const now = START + i * 1000;
    if (operations) {
      const expected = reference.commit(scope, operations, now);
      equal(await store.commit(scope, operations, { now }), { revision: expected }, `the answer of step ${i}`);
    } else equal(await store.erase(scope), reference.erase(scope), `the counts of step ${i}`);
    const asOf = START + since * 1000 - 500;
    equal(await view(other, scope, since, asOf), reference.view(scope, since, asOf), `the scope after step ${i}`);
  }
  for (const scope of SCOPES)
    equal(await view(a, scope, 0, START), reference.view(scope, 0, START), 'a scope at the end');
}

async function view(store: MemoryStore, scope: MemoryScopeId, since: number, asOf: number): Promise<unknown> {
  const [revision, query, all, changes, past] = await Promise.all([
    store.revision(scope),
    store.query(scope),
    store.query(scope, { filter: { includeInvalid: true } }),
    store.changes(scope, { since }),
    store.query(scope, { asOf: isoOf(asOf) }),
  ]);
  const revisions = await Promise.all([...IDS].toSorted().map((id) => store.revisions(scope, id)));
  const notes = await Promise.all([...KINDS].toSorted().map((kind) => store.notes(scope, kind)));
  return {
    revision,
    query: query.items.map((hit) => hit.memory),
    all: all.items.map((hit) => hit.memory),
    changes: { revision: changes.revision, isReset: changes.isReset, changed: changes.changed },
    past: past.items.map((hit) => `${hit.memory.id} ${hit.memory.revision}`).toSorted(),
    revisions: revisions.filter((list) => list.length > 0),
    notes: notes
      .flatMap((found) =>
        found.notes.map(({ kind, key, value }) => `${JSON.stringify([kind, key])} ${JSON.stringify(value)}`),
      )
      .toSorted(),
  };
}

/** Random commits. Every read is compared with the reference store. */
export const model: MemorySubject = {
  name: 'model',
  tests(kit) {
    const numRuns = kit.runs(60, 1000, 1);
    kit.test(`${numRuns} random histories read the same as in the reference store (seed ${kit.seed})`, async () => {
      const steps = fc.array(step, { minLength: 3, maxLength: 14 });
      await forAll(steps, (tape) => kit.onStage((stage) => play(stage, tape)), { seed: kit.seed, numRuns });
    });
  },
};
