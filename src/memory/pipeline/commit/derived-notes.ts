import { logger } from 'genkit/logging';
import type { Json } from '../../../json/value.ts';
import { markedLines } from '../../../session/log/transcript.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { MalformedAnswerError, type AskModel } from '../ask-model.ts';
import type { LearnContext } from '../extract/learn.ts';
import type { Guard } from '../guard/judge-text.ts';
import { redactJson } from '../guard/redact.ts';
import { NOTES, type Pipeline } from '../pipeline.ts';

/** The most memories from which a first profile is made. */
const MOST_FOR_PROFILE = 200;

/** The profile and the summary of a scope, which are derived from its memories. */
export interface Derived {
  readonly profile?: Json;
  readonly summary?: string;
}

/** The profile and the summary of a scope; one read. A stored profile that does not fit the manager's schema is ignored. */
export async function readDerived(
  { store, profile: schema }: Pipeline,
  { id, options }: ScopeTarget,
): Promise<Derived> {
  const { notes } = await store.notes(id, NOTES.derived, options);
  const { profile, ...rest } = Object.fromEntries(notes.map(({ key, value }) => [key, value]));
  if (profile === undefined) return rest;
  const parsed = schema ? schema.safeParse(profile) : { success: true, data: profile };
  return { ...rest, ...(parsed.success && { profile: parsed.data as Json }) };
}

/**
 * Writes the summary, and the profile if there are new facts and a model.
 *
 * @param guard Checks the texts that the model adds. `undefined`: no check, because a person has approved the fact.
 */
export async function derivedNotes(
  pipeline: Pipeline,
  context: LearnContext,
  guard: Guard | undefined,
  before: Derived,
  { facts, summary }: { readonly facts: readonly string[]; readonly summary: string | undefined },
): Promise<MemoryOperation[]> {
  const notes: MemoryOperation[] = [];
  if (summary !== undefined) notes.push(derivedNote('summary', await guardedSummary(summary, before.summary, guard)));
  const { ask } = context;
  if (!ask || !pipeline.profile || facts.length === 0) return notes;
  try {
    const made = await nextProfile(pipeline, context, ask, before.profile, facts);
    const profile = await guardedProfile(made, before.profile, guard);
    const { success } = pipeline.profile.safeParse(profile);
    // If a required member is missing, the profile stays unchanged.
    return success ? [...notes, derivedNote('profile', profile)] : notes;
  } catch (error) {
    if (!(error instanceof MalformedAnswerError)) throw error;
    // Without the new facts the old profile would be wrong. The next one is made from the memories.
    logger.warn(`A profile was removed, because the model could not update it. ${error.message}`);
    return [...notes, derivedNote('profile', undefined)];
  }
}

/**
 * Removes the sentences that a guard stops from a new summary, except sentences of the previous summary. If no sentence remains, the
 * previous summary stays.
 */
async function guardedSummary(
  summary: string,
  before: string | undefined,
  guard: Guard | undefined,
): Promise<string | undefined> {
  const sentences = sentencesOf(summary);
  const kept = await allowed(sentences, sentencesOf(before ?? ''), guard);
  return sentences.filter((sentence) => kept?.has(sentence)).join('') || before;
}

/** Each sentence includes the white space after it. */
function sentencesOf(text: string): string[] {
  return text.match(/.+?(?:[.!?]\s+|[。！？]\s*|\n+|$)/gs) ?? [];
}

/** Removes the texts that a guard stops from a new profile, except texts of the previous profile. */
async function guardedProfile(
  made: Json,
  before: Json | undefined,
  guard: Guard | undefined,
): Promise<Json | undefined> {
  const kept = await allowed(textsIn(made), textsIn(before), guard);
  return kept ? (onlyTexts(made, kept) ?? {}) : before;
}

/** Returns the known texts, and those of the others that no guard stops. `undefined`: a guard stops the others, but none of them alone. */
async function allowed(
  texts: readonly string[],
  known: readonly string[],
  guard: Guard | undefined,
): Promise<ReadonlySet<string> | undefined> {
  const kept = new Set(known);
  const added = [...new Set(texts)].filter((text) => !kept.has(text));
  const reason = await guard?.(added.join('\n'), 'memory', 'implicit');
  if (!guard || reason === undefined) return new Set(texts);
  const reasons: string[] = [];
  for (const text of added) {
    const own = await guard(text, 'memory', 'implicit');
    if (own === undefined) kept.add(text);
    else reasons.push(own);
  }
  for (const one of reasons.length > 0 ? reasons : [reason])
    logger.warn(`A sentence of a summary, or a text of a profile, was left out. ${one}`);
  return reasons.length > 0 ? kept : undefined;
}

/** Returns the texts of a value, including the names of its members. */
function textsIn(value: Json | undefined): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return typeof value === 'object' && value !== null ? Object.entries(value).flat().flatMap(textsIn) : [];
}

/** Removes all texts from a value, except these. */
function onlyTexts(value: Json, kept: ReadonlySet<string>): Json | undefined {
  if (typeof value === 'string') return kept.has(value) ? value : undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => onlyTexts(one, kept)).filter((one) => one !== undefined);
  const members = Object.entries(value).flatMap(([name, member]): [string, Json][] => {
    const left = kept.has(name) ? onlyTexts(member, kept) : undefined;
    return left === undefined ? [] : [[name, left]];
  });
  return Object.fromEntries(members);
}

/** Removes the profile and the summary of a scope, because they may contain facts that are invalid or were removed. */
export const REMOVE_DERIVED = [derivedNote('profile', undefined), derivedNote('summary', undefined)];

/** Writes the profile or the summary, or removes it. */
function derivedNote(key: 'profile' | 'summary', value: Json | undefined): MemoryOperation {
  return { op: 'note', kind: NOTES.derived, key, value };
}

/** Asks the model to update the profile with new facts. A first profile is also made from the latest memories. */
async function nextProfile(
  { store, profile: schema, redact }: Pipeline,
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
  const made = (await ask({
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
  return redactJson(made, redact);
}
