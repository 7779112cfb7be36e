import { z } from 'genkit';
import { markedLines } from '../../../session/log/transcript.ts';
import type { Memory, MemoryDraft } from '../../../store/memory/contract.ts';
import { isExpired } from '../../../store/memory/version.ts';
import type { AskModel } from '../ask-model.ts';
import type { Candidate } from '../records/candidate.ts';
import type { LearnContext } from '../extract/learn.ts';
import type { Pipeline } from '../pipeline.ts';
import { isBlank, sameFactKey } from '../../same-fact.ts';
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

const INSTRUCTIONS = `You keep the long-term memory of an assistant free of duplicates and contradictions. You get existing memories and new facts, each with a number. New facts are in the order in which they were said. Answer one operation for each of them:

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

/** A fact that no rule decides, so the model is asked. */
interface Undecided {
  /** The job's candidates with this fact. */
  readonly candidates: readonly Candidate[];
  /** The ids of similar memories. */
  readonly near: readonly string[];
}

/** Compares the candidates with the known memories and with each other, and returns the changes. */
export async function consolidate(
  pipeline: Pipeline,
  context: LearnContext,
  candidates: readonly Candidate[],
  maxInvalidations: number,
): Promise<Consolidated> {
  const { nearest, now } = pipeline;
  const { scope, ask, signal } = context;
  const working = new WorkingMemories(maxInvalidations, new Date(now()).toISOString());
  const undecided = new Map<string, Undecided>();
  const keyed = candidates.flatMap((candidate) => keyedId(candidate) ?? []);
  await addWithSuccessors(pipeline, context, working, keyed, Date.parse(candidates[0]?.source.at ?? ''));
  const quarantined: { candidate: Candidate; reason: string }[] = [];
  for (const candidate of candidates) {
    if (isBlank(candidate.text)) working.counts.ignored++;
    else if (candidate.role !== undefined) working.create(candidate);
    else if (candidate.key !== undefined) {
      if (!working.putKeyed(candidate)) quarantined.push({ candidate, reason: tooMany(1) });
    } else {
      const found = await nearest(scope, candidate.text, { kind: candidate.kind, abortSignal: signal });
      // A message that is stored word for word is never changed.
      const near = found.filter(({ role }) => role === undefined);
      for (const memory of near) working.add(memory);
      const same = working.findSame(candidate);
      if (same) working.corroborate(same, candidate);
      else if (!ask) working.create(candidate);
      else addUndecided(undecided, candidate, near);
    }
  }
  const queue = inSaidOrder(undecided);
  while (queue.length > 0) {
    const asked = queue.splice(0, MOST_ASKED);
    // Also compare with the memories that this job has created or changed. A fact with a key is compared only by its key.
    const changed = working.changed.filter((memory) => memory['key'] === undefined && memory['role'] === undefined);
    const ids = new Set([...asked.flatMap(({ near }) => near), ...changed.map(({ id }) => id)]);
    const known = [...ids].flatMap((id) => working.active(id) ?? []);
    const facts = asked.map(({ candidates }) => candidates.at(-1)!);
    const operations = known.length + facts.length > 1 ? await askOperations(ask!, known, facts) : [];
    const answers = facts.map((_, i) => operations.find((one) => one.new === i + 1));
    const contested = asked.filter((_, i) => isContested(i, facts, answers));
    for (const [i, one] of asked.entries()) {
      if (contested.includes(one)) continue;
      for (const candidate of one.candidates) {
        // The job contains the fact twice.
        const same = working.findSame(candidate);
        if (same) {
          working.corroborate(same, candidate);
          continue;
        }
        const reason = await apply(pipeline, context, working, candidate, answers[i], known);
        if (reason !== undefined) quarantined.push({ candidate, reason });
      }
    }
    // Ask again about these facts: the facts that they contradict are memories by then, and the stronger of the two stays valid.
    queue.unshift(...contested);
  }
  return { working, quarantined };
}

function addUndecided(undecided: Map<string, Undecided>, candidate: Candidate, near: readonly Memory[]): void {
  const { kind, text, data } = candidate;
  const key = JSON.stringify([kind, sameFactKey(text), kind === 'procedural' ? data : undefined]);
  const earlier = undecided.get(key)?.candidates ?? [];
  // Move the fact to the position where it was said last.
  undecided.delete(key);
  undecided.set(key, { candidates: [...earlier, candidate], near: near.map(({ id }) => id) });
}

/** Returns the facts in the order in which they were said, because the model keeps the last of several contradicting facts. */
function inSaidOrder(undecided: ReadonlyMap<string, Undecided>): Undecided[] {
  const positionOf = ({ candidates }: Undecided) => candidates.at(-1)!.source.from ?? 0;
  return [...undecided.values()].sort((a, b) => positionOf(a) - positionOf(b));
}

/**
 * Whether the model dropped a fact that must be kept, or that is more trusted than a kept fact: the model may have dropped it for another
 * fact of the same request.
 */
function isContested(index: number, facts: readonly Candidate[], answers: readonly (Operation | undefined)[]): boolean {
  const fact = facts[index]!;
  const mayWin = (other: Candidate) => isWanted(fact) || fact.source.trust > other.source.trust;
  return isLeftOut(answers[index]) && facts.some((other, i) => !isLeftOut(answers[i]) && mayWin(other));
}

function isLeftOut(operation: Operation | undefined): boolean {
  return operation?.op === 'NOOP' && (operation.existing ?? []).length === 0;
}

/** Whether the fact must be kept, because a person asked to remember it or approved it. */
function isWanted({ source, approvedAt }: Candidate): boolean {
  return source.type === 'explicit' || approvedAt !== undefined;
}

/** Adds the memories with these ids and all their successors. A memory that has expired at the time of the new facts counts as removed. */
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

/** Asks the model for the operations. An operation that is still invalid after the repair is ignored: its fact becomes a memory. */
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
      return operations.map(operationFault).find((wrong) => wrong !== undefined) ?? replacedTwice(operations);
    },
  });
  const possible = answered.filter((operation) => operationFault(operation) === undefined);
  // Ignore an UPDATE if another operation changes the same memory, because its sentence would undo that change.
  const hasRival = ({ existing: [memory] = [] }: Operation, i: number) =>
    possible.some(
      (one, j) => j !== i && (one.op === 'UPDATE' || one.op === 'DELETE') && one.existing?.includes(memory!),
    );
  return possible.filter((operation, i) => operation.op !== 'UPDATE' || !hasRival(operation, i));
}

function replacedTwice(operations: readonly Operation[]): string | undefined {
  const replaced = operations.flatMap(({ op, existing }) => (op === 'DELETE' ? [...new Set(existing)] : []));
  const twice = replaced.find((number, i) => replaced.indexOf(number) < i);
  if (twice === undefined) return undefined;
  return `two new facts replace existing memory ${twice}. If they contradict each other, answer NOOP without a number for the earlier one; if both can be true, CREATE for one of them.`;
}

/** Applies an operation. Returns a reason if the candidate must wait for a decision. */
async function apply(
  { redact }: Pipeline,
  { guard }: LearnContext,
  working: WorkingMemories,
  candidate: Candidate,
  operation: Operation | undefined,
  known: readonly MemoryDraft[],
): Promise<string | undefined> {
  const ids = (operation?.existing ?? []).map((number) => known[number - 1]!.id);
  // An earlier operation may have replaced a memory. Then this fact contradicts its successor.
  const named = [...new Set(ids.flatMap((id) => working.holding(id) ?? []))];
  const [first] = named;
  const op = operation?.op;
  if (isLeftOut(operation) && !isWanted(candidate)) working.counts.ignored++;
  else if (!first || op === 'CREATE' || (op === 'UPDATE' && candidate.approvedAt)) working.create(candidate);
  else if (op === 'NOOP' && ids.includes(first.id)) working.corroborate(first, candidate);
  else if (op === 'UPDATE') {
    // The model has written the sentence, so it is also redacted and checked.
    const text = await redact(operation!.text!);
    if ((await guard(text, 'memory', candidate.source.type)) !== undefined) working.create(candidate);
    else working.update(first, candidate, text);
  } else if (!working.supersede(named, candidate)) {
    return tooMany(named.length);
  }
  return undefined;
}

function tooMany(count: number): string {
  return `The number of memories that it would replace is ${count}. With the job's earlier replacements this is more than limits.maxInvalidations. Approve it to replace them.`;
}
