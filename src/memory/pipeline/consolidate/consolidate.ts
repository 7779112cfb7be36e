import { z } from 'genkit';
import { markedLines } from '../../../session/log/transcript.ts';
import type { MemoryDraft } from '../../../store/memory/contract.ts';
import { isExpired } from '../../../store/memory/version.ts';
import type { AskModel } from '../ask-model.ts';
import type { Candidate } from '../records/candidate.ts';
import type { LearnContext } from '../extract/learn.ts';
import type { Pipeline } from '../pipeline.ts';
import { isBlank } from '../../same-fact.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { keyedId, WorkingMemories } from './working-memories.ts';

/** The most new facts in one request to the model. */
const MOST_ASKED = 10;

const Answer = z.object({
  operations: z.array(
    z.object({
      new: z.number().int().describe('Number of the new fact'),
      op: z.enum(['CREATE', 'UPDATE', 'DELETE', 'NOOP']),
      existing: z.array(z.number().int()).optional().describe('Numbers of the existing memories that it is about'),
      text: z.string().min(1).max(2_000).optional().describe('With UPDATE: one sentence that says what both say'),
    }),
  ),
});
type Operation = z.output<typeof Answer>['operations'][number];

const INSTRUCTIONS = `You keep the long-term memory of an assistant free of duplicates and contradictions. You get existing memories and new facts, each with a number. Answer one operation for each new fact:

- CREATE: no existing memory is about the same.
- UPDATE: one existing memory is about the same, and both can be true. Give its number, and as text one sentence that says all that both say.
- DELETE: the new fact can't be true together with existing memories, as things have changed or were wrong. Give their numbers; the new fact takes their place.
- NOOP: an existing memory says it already; give its number. Without a number: it is not worth keeping.

If new facts contradict each other, answer NOOP without a number for those before the last.

Likes of different things, or facts about different persons, times or places, do not contradict each other.`;

/** The changes that a job makes to its scope. */
export interface Consolidated {
  readonly working: WorkingMemories;
  /** Candidates that must wait for a decision. */
  readonly quarantined: readonly { readonly candidate: Candidate; readonly reason: string }[];
}

/** Compares the candidates with the known memories, and works out the changes. */
export async function consolidate(
  pipeline: Pipeline,
  work: LearnContext,
  candidates: readonly Candidate[],
  maxInvalidations: number,
): Promise<Consolidated> {
  const { nearest, now } = pipeline;
  const { scope, ask, signal } = work;
  const working = new WorkingMemories(maxInvalidations, new Date(now()).toISOString());
  const undecided: { candidate: Candidate; near: readonly string[] }[] = [];
  const keyed = candidates.flatMap((candidate) => keyedId(candidate) ?? []);
  await addWithSuccessors(pipeline, work, working, keyed, Date.parse(candidates[0]?.source.at ?? ''));
  const quarantined: { candidate: Candidate; reason: string }[] = [];
  for (const candidate of candidates) {
    if (isBlank(candidate.text)) working.counts.ignored++;
    else if (candidate.role !== undefined) working.create(candidate);
    else if (candidate.key !== undefined) {
      if (!working.putKeyed(candidate)) quarantined.push({ candidate, reason: tooMany(1) });
    } else {
      const found = await nearest(scope, candidate.text, { kind: candidate.kind, abortSignal: signal });
      // A message that is kept word for word stays as it is.
      const near = found.filter(({ role }) => role === undefined);
      for (const memory of near) working.add(memory);
      const same = working.findSame(candidate);
      if (same) working.corroborate(same, candidate);
      else if (near.length === 0 || !ask) working.create(candidate);
      else undecided.push({ candidate, near: near.map(({ id }) => id) });
    }
  }
  for (let i = 0; i < undecided.length; i += MOST_ASKED) {
    const asked = undecided.slice(i, i + MOST_ASKED);
    const known = [...new Set(asked.flatMap(({ near }) => near))].flatMap((id) => working.active(id) ?? []);
    const facts = asked.map(({ candidate }) => candidate);
    const operations = await askOperations(ask!, known, facts);
    for (const [j, candidate] of facts.entries()) {
      const operation = operations.find((one) => one.new === j + 1);
      // The job has the fact twice.
      const same = working.findSame(candidate);
      if (same) {
        working.corroborate(same, candidate);
        continue;
      }
      const reason = await apply(pipeline, work, working, candidate, operation, known);
      if (reason !== undefined) quarantined.push({ candidate, reason });
    }
  }
  return { working, quarantined };
}

/** Adds memories with these ids, those that replaced them, and so on. One that has expired at the time of the new facts counts as removed. */
async function addWithSuccessors(
  { store }: Pipeline,
  { id, options }: ScopeTarget,
  working: WorkingMemories,
  ids: readonly string[],
  time: number,
): Promise<void> {
  const seen = new Set<string>();
  for (let next = ids; next.length > 0;) {
    for (const one of next) seen.add(one);
    const memories = await store.get(id, next, options);
    for (const memory of memories) if (!isExpired(memory, time)) working.add(memory);
    next = [...new Set(memories.flatMap(({ supersededBy }) => supersededBy ?? []))].filter((one) => !seen.has(one));
  }
}

/** Asks for the operations. One that is still impossible after the repair is left out: its fact becomes a memory. */
async function askOperations(
  ask: AskModel,
  known: readonly MemoryDraft[],
  facts: readonly Candidate[],
): Promise<Operation[]> {
  const operationFault = ({ new: fact, op, existing = [], text }: Operation): string | undefined => {
    if (fact < 1 || fact > facts.length) return `there is no new fact ${fact}.`;
    const wrong = existing.find((number) => number < 1 || number > known.length);
    if (wrong !== undefined) return `there is no existing memory ${wrong}.`;
    if (op === 'UPDATE' && (existing.length !== 1 || isBlank(text ?? '')))
      return 'UPDATE needs one existing memory and a text.';
    return op === 'DELETE' && existing.length === 0 ? 'DELETE needs the numbers of existing memories.' : undefined;
  };
  const list = (texts: readonly { text: string }[]) =>
    texts.map(({ text }, i) => `${i + 1}.\n${markedLines(text)}`).join('\n');
  const { operations: answered } = await ask({
    system: INSTRUCTIONS,
    prompt: `Existing memories:\n${list(known)}\n\nNew facts:\n${list(facts)}\n\nAnswer the operations.`,
    schema: Answer,
    fault: ({ operations }, isRepaired) => {
      if (isRepaired) return undefined;
      const numbers = operations.map((operation) => operation.new);
      const twice = numbers.find((number, i) => numbers.indexOf(number) < i);
      if (twice !== undefined) return `new fact ${twice} has two operations.`;
      return operations.map(operationFault).find((wrong) => wrong !== undefined);
    },
  });
  const possible = answered.filter((operation) => operationFault(operation) === undefined);
  // The sentence of an UPDATE does not say what another operation makes of the memory.
  const hasRival = ({ existing: [memory] = [] }: Operation, i: number) =>
    possible.some(
      (one, j) => j !== i && (one.op === 'UPDATE' || one.op === 'DELETE') && one.existing?.includes(memory!),
    );
  return possible.filter((operation, i) => operation.op !== 'UPDATE' || !hasRival(operation, i));
}

/** Carries out an operation. Returns a reason if the candidate must wait for a decision. */
async function apply(
  { redact }: Pipeline,
  { guard }: LearnContext,
  working: WorkingMemories,
  candidate: Candidate,
  operation: Operation | undefined,
  known: readonly MemoryDraft[],
): Promise<string | undefined> {
  // Only those that still hold: an earlier operation may have replaced them.
  const named = (operation?.existing ?? []).flatMap((number) => working.active(known[number - 1]!.id) ?? []);
  const [first] = named;
  const op = operation?.op;
  // What a person asks to remember, or approves, is worth keeping.
  const isWanted = candidate.source.type === 'explicit' || candidate.approvedAt !== undefined;
  if (op === 'NOOP' && (operation!.existing ?? []).length === 0 && !isWanted) working.counts.ignored++;
  else if (!first || op === 'CREATE' || (op === 'UPDATE' && candidate.approvedAt)) working.create(candidate);
  else if (op === 'NOOP') working.corroborate(first, candidate);
  else if (op === 'UPDATE') {
    // The model has written the sentence, so it is redacted and checked, too.
    const text = await redact(operation!.text!);
    if ((await guard(text, 'memory', candidate.source.type)) !== undefined) working.create(candidate);
    else working.update(first, candidate, text);
  } else if (!working.supersede(named, candidate)) {
    return tooMany(named.length);
  }
  return undefined;
}

function tooMany(count: number): string {
  return `It would replace more memories than one job may: ${count}, with those before it more than limits.maxInvalidations. Approve it to replace them.`;
}
