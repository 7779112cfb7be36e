import { logger } from 'genkit/logging';
import type { Json } from '../../../json/value.ts';
import { markedLines } from '../../../session/log/transcript.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { MalformedAnswerError, type AskModel } from '../ask-model.ts';
import type { LearnContext } from '../extract/learn.ts';
import type { Guard } from '../guard/judge-text.ts';
import { NOTES, type Pipeline } from '../pipeline.ts';

/** The most memories that a first profile is made of. */
const MOST_FOR_PROFILE = 200;

/** The profile and the summary of a scope; one read. A profile that does not fit the manager's schema any more counts as none. */
export async function readDerived(
  { store, profile: schema }: Pick<Pipeline, 'store' | 'profile'>,
  { id, options }: ScopeTarget,
): Promise<{ readonly profile?: Json; readonly summary?: string }> {
  const { notes } = await store.notes(id, NOTES.derived, options);
  const { profile, ...rest } = Object.fromEntries(notes.map(({ key, value }) => [key, value]));
  if (profile === undefined) return rest;
  const parsed = schema ? schema.safeParse(profile) : { success: true, data: profile };
  return { ...rest, ...(parsed.success && { profile: parsed.data as Json }) };
}

/**
 * Writes the summary, and the profile if there are new facts and a model.
 *
 * @param guard Stops what the model adds to them. `undefined`: a person has approved the fact that they are made of.
 */
export async function derivedNotes(
  pipeline: Pipeline,
  work: ScopeTarget & LearnContext,
  guard: Guard | undefined,
  profile: Json | undefined,
  { facts, summary }: { readonly facts: readonly string[]; readonly summary: string | undefined },
): Promise<MemoryOperation[]> {
  const notes: MemoryOperation[] = [];
  const stopped = summary === undefined ? undefined : await guard?.(summary, 'memory', 'implicit');
  if (stopped !== undefined)
    logger.warn(`The summary stays as it was, because the model's next one was stopped. ${stopped}`);
  else if (summary !== undefined) notes.push(derivedNote('summary', summary));
  const { ask } = work;
  if (!ask || !pipeline.profile || facts.length === 0) return notes;
  let next: Json | undefined;
  // Without the facts a profile would be wrong; the next one is made of the memories.
  const leaveOut = (reason: string) => logger.warn(`The profile is removed; the next facts make a new one. ${reason}`);
  try {
    const made = await nextProfile(pipeline, work, ask, profile, facts);
    const before = new Set(textsIn(profile));
    const added = textsIn(made).filter((text) => !before.has(text));
    const reason = await guard?.(added.join('\n'), 'memory', 'implicit');
    if (reason === undefined) next = made;
    else leaveOut(reason);
  } catch (error) {
    if (!(error instanceof MalformedAnswerError)) throw error;
    leaveOut(error.message);
  }
  return [...notes, derivedNote('profile', next)];
}

function derivedNote(key: 'profile' | 'summary', value: Json | undefined): MemoryOperation {
  return { op: 'note', kind: NOTES.derived, key, value };
}

/** The texts of a value, also those that are names of members. */
function textsIn(value: Json | undefined): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.entries(value).flat().flatMap(textsIn) : [];
}

/** Asks the model to update the profile with new facts. A first profile is also made of the latest memories. */
async function nextProfile(
  { store, profile: schema }: Pipeline,
  { id, options }: ScopeTarget,
  ask: AskModel,
  before: Json | undefined,
  facts: readonly string[],
): Promise<Json> {
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
    schema: schema!,
  })) as Json;
}
