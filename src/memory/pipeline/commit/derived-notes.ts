import type { Json } from '../../../json/value.ts';
import { markedLines } from '../../../session/log/transcript.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import type { AskModel } from '../extract/ask-model.ts';
import type { LearnContext } from '../extract/learn.ts';
import { NOTES, type Pipeline } from '../pipeline.ts';

/** The most memories that a first profile is made of. */
const MOST_FOR_PROFILE = 200;

/** The profile and the summary of a scope; one read. */
export async function readDerived(
  { store }: Pick<Pipeline, 'store'>,
  { id, options }: ScopeTarget,
): Promise<{ readonly profile?: Json; readonly summary?: string }> {
  const { notes } = await store.notes(id, NOTES.derived, options);
  return Object.fromEntries(notes.map(({ key, value }) => [key, value]));
}

/** Writes the summary, and the profile if there are new facts and a model. */
export async function derivedNotes(
  pipeline: Pipeline,
  work: ScopeTarget & LearnContext,
  profile: Json | undefined,
  { facts, summary }: { readonly facts: readonly string[]; readonly summary: string | undefined },
): Promise<MemoryOperation[]> {
  const next = work.ask && facts.length > 0 ? await nextProfile(pipeline, work, work.ask, profile, facts) : undefined;
  return Object.entries({ profile: next, summary }).flatMap(([key, value]): MemoryOperation[] =>
    value === undefined ? [] : [{ op: 'note', kind: NOTES.derived, key, value }],
  );
}

/** Asks the model to update the profile with new facts. A first profile is also made of the latest memories. */
async function nextProfile(
  { store, profile: schema }: Pipeline,
  { id, options }: ScopeTarget,
  ask: AskModel,
  before: Json | undefined,
  facts: readonly string[],
): Promise<Json | undefined> {
  if (!schema) return undefined;
  let known = facts;
  if (before === undefined) {
    const { items } = await store.query(id, { ...options, filter: { kind: 'declarative' }, k: MOST_FOR_PROFILE });
    const lasting = items.flatMap(({ memory }) => (memory.expiresAt === undefined ? [memory.text] : []));
    known = [...lasting.toReversed(), ...facts];
  }
  return (await ask({
    system:
      'You keep a structured profile up to date. You get the profile as it is, if there is one, and facts. Answer the whole new profile: change what the facts change, keep all else as it is, and leave out what is not known.',
    prompt: [
      ...(before === undefined ? [] : ['Profile:', markedLines(JSON.stringify(before)), '']),
      'Facts, the newest last:',
      ...known.map(markedLines),
      'Answer the profile.',
    ].join('\n'),
    schema,
  })) as Json;
}
