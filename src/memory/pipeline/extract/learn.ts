import { isDeepStrictEqual } from 'node:util';
import type { MessageData } from 'genkit';
import { messageText } from '../../../session/log/transcript.ts';
import type { MemoryJob } from '../../../store/memory/contract.ts';
import type { MemoryFact } from '../../types.ts';
import { isMemoryTool } from '../../memory-tool-names.ts';
import { guardOf, type Guard } from '../guard/judge-text.ts';
import type { Quarantined } from '../guard/quarantine-note.ts';
import { procedureText } from '../consolidate/procedures.ts';
import { isListOf, isTextOrObject } from '../ingest/check-ingest.ts';
import { hashInRange } from '../ingest/ranges.ts';
import type { FactsInput, JobInput, LearnInput } from '../jobs/job-input.ts';
import type { Pipeline, ScopeWork } from '../pipeline.ts';
import { failedPrecondition, invalidArgument } from '../../../errors.ts';
import { withinTime, type AskModel } from './ask-model.ts';
import { candidateOf, typeOfFact, type Candidate, type Origin } from './candidate.ts';
import { distillProcedure, extractFacts, withoutPersons } from './extract.ts';

/** The result of learning: candidates, quarantined texts, and the new summary. */
export interface Learned {
  readonly candidates: readonly Candidate[];
  readonly quarantined: readonly Quarantined[];
  readonly summary?: string;
}

/** A running job. */
export interface JobWork extends ScopeWork {
  readonly job: MemoryJob;
  readonly ask: AskModel | undefined;
  readonly signal: AbortSignal;
}

const isFacts = isListOf(isTextOrObject, 'texts, or of facts such as { text }');

interface Said {
  readonly position: number;
  readonly message: MessageData;
}

/** Checks the job's texts by the guards, and finds the facts to remember. */
export async function learn(
  pipeline: Pipeline,
  work: JobWork,
  input: JobInput,
  summary: string | undefined,
): Promise<Learned> {
  const guard = guardOf(work, input.task, pipeline);
  const learned =
    input.task === 'facts' ? given(pipeline, input) : await fromMessages(pipeline, work, input, guard, summary);
  const candidates = await rewritten(work, input, learned.candidates);
  return checked(pipeline, work, candidates, learned, guard, input);
}

/** Facts that the application or the user gave. */
function given(pipeline: Pipeline, input: FactsInput): Learned {
  const origin = originOf(pipeline, input, input.sha256);
  const type = input.source.type ?? 'bootstrap';
  const candidates = input.facts.map((fact) => ({
    ...candidateOf(fact, type, {}, origin),
    ...(input.isApproved && { approvedAt: new Date(pipeline.now()).toISOString() }),
  }));
  return { candidates, quarantined: [] };
}

async function fromMessages(
  pipeline: Pipeline,
  work: JobWork,
  input: LearnInput,
  guard: Guard,
  summary: string | undefined,
): Promise<Learned> {
  const quarantined: Quarantined[] = [];
  const said: Said[] = [];
  for (const [i, message] of input.messages.entries()) {
    const position = input.range.from + i;
    const text = messageText(message);
    if (text === '' || (message.role === 'system' && input.source.type === undefined)) continue;
    const reason = input.isApproved
      ? undefined
      : await guard(text, 'message', message.role === 'tool' ? 'tool' : 'implicit');
    if (reason === undefined) said.push({ position, message });
    else
      quarantined.push({ reason, at: new Date(pipeline.now()).toISOString(), source: input.source, message, position });
  }
  const origin = originOf(pipeline, input, hashInRange(input.range, input.range.to)!);
  const found = await find(pipeline, work, input, said, summary, origin);
  return { ...found, quarantined };
}

async function find(
  pipeline: Pipeline,
  work: JobWork,
  input: LearnInput,
  said: readonly Said[],
  summary: string | undefined,
  origin: Origin,
): Promise<Omit<Learned, 'quarantined'>> {
  const people = said.filter(({ message }) => message.role !== 'tool');
  const how = input.task === 'learn' && pipeline.extract === 'verbatim' ? 'verbatim' : input.task;
  if (how === 'procedure') return { candidates: await procedure(work, input, said, origin) };
  if (how === 'verbatim') return { candidates: people.map((one) => verbatim(input, one, origin)) };
  const heard = people.map(withoutToolParts);
  const asked = await ask(pipeline, work, heard, summary);
  const candidates = asked.facts.flatMap((fact) => {
    const type = input.source.type ?? typeOfFact(fact, (at) => heard.find(({ position }) => position === at)?.message);
    return type === undefined ? [] : [candidateOf(fact, type, rangeOf(fact, input), origin)];
  });
  const tools = pipeline.learnFromTools ? said.flatMap(withoutMemories) : [];
  const told = await ask({ ...pipeline, summary: false }, work, tools, undefined);
  for (const fact of told.facts) candidates.push(candidateOf(fact, 'tool', rangeOf(fact, input), origin));
  return { candidates, ...(asked.summary !== undefined && { summary: asked.summary }) };
}

async function ask(
  { extract, topics, limits, summary: keepsSummary }: Pipeline,
  { scope, ask: model, signal }: JobWork,
  said: readonly Said[],
  summary: string | undefined,
): Promise<{ facts: readonly MemoryFact[]; summary?: string | undefined }> {
  if (said.length === 0) return { facts: [] };
  const messages = said.map(({ message }) => message);
  const positions = said.map(({ position }) => position);
  if (typeof extract === 'function') {
    const found = await withinTime(limits.timeoutMs, signal, async (abortSignal) =>
      extract({ scope, messages, positions, summary, abortSignal }),
    );
    const expected = isFacts(found);
    if (expected !== undefined) throw invalidArgument(`extract must return ${expected}.`);
    return { facts: found.map((fact) => (typeof fact === 'string' ? { text: fact } : fact)) };
  }
  return extractFacts(mustAsk(model), {
    topics,
    messages,
    positions,
    summary,
    summaryLength: keepsSummary ? limits.summaryLength : 0,
  });
}

/** Throws without a model: the job may come from a process that has one. */
function mustAsk(model: AskModel | undefined): AskModel {
  if (model) return model;
  throw failedPrecondition('This memory job needs a model, and the memory manager of this process has none.');
}

async function procedure(
  work: JobWork,
  input: LearnInput,
  said: readonly Said[],
  origin: Origin,
): Promise<Candidate[]> {
  if (said.length === 0) return [];
  const { task, steps } = await distillProcedure(
    mustAsk(work.ask),
    said.map(({ message }) => message),
  );
  const fact: MemoryFact = {
    kind: 'procedural',
    text: procedureText(task, steps),
    data: { task, steps },
    schemaId: 'procedure',
  };
  return [candidateOf(fact, input.source.type ?? 'implicit', { from: input.range.from, to: input.range.to }, origin)];
}

function verbatim(input: LearnInput, { position, message }: Said, origin: Origin): Candidate {
  const source = { ...origin.source, sessionId: input.source.sessionId ?? input.source.id };
  const fact = { text: messageText(withoutToolParts({ position, message }).message), role: message.role };
  const type = input.source.type ?? 'implicit';
  return {
    ...candidateOf(fact, type, { from: position, to: position + 1 }, { ...origin, source }),
    role: message.role,
  };
}

/** Rewrites candidates of an app, so that they say nothing about persons. */
async function rewritten(
  { scope, ask: model }: JobWork,
  input: JobInput,
  candidates: readonly Candidate[],
): Promise<readonly Candidate[]> {
  if (scope.kind !== 'app' || !model || input.isApproved) return candidates;
  const texts = await withoutPersons(
    model,
    candidates.map(({ text }) => text),
  );
  return candidates.map((candidate, i) => {
    const text = texts[i]!;
    return { ...candidate, text, source: { ...candidate.source, statement: text } };
  });
}

/** Quarantines the candidates that a guard stops, and all candidates of an app. */
async function checked(
  pipeline: Pipeline,
  work: JobWork,
  candidates: readonly Candidate[],
  learned: Learned,
  guard: Guard,
  input: JobInput,
): Promise<Learned> {
  if (input.isApproved) return { ...learned, candidates };
  const quarantined = [...learned.quarantined];
  const passed: Candidate[] = [];
  for (const candidate of candidates) {
    const found = await guard(candidateText(candidate), 'memory', candidate.source.type);
    const reason =
      found ??
      (work.scope.kind === 'app' ? 'It waits for approval, because all users of the app will read it.' : undefined);
    const isKnown =
      reason !== undefined && input.task === 'procedure' && (await isRemembered(pipeline, work, candidate));
    if (reason === undefined || isKnown) passed.push(candidate);
    else quarantined.push({ reason, at: candidate.source.at, source: input.source, candidate });
  }
  return { ...learned, candidates: passed, quarantined };
}

/** Whether a memory has it word for word: then it has passed the guards, or a person has approved it. */
async function isRemembered(
  { nearest }: Pipeline,
  { scope, signal }: JobWork,
  { kind, source: { statement, data } }: Candidate,
): Promise<boolean> {
  const near = await nearest(scope, statement, { k: 10, kind, abortSignal: signal });
  return near.some(({ sources }) =>
    sources.some((source) => source.statement === statement && isDeepStrictEqual(source.data, data)),
  );
}

function candidateText({ text, data, key }: Candidate): string {
  return [text, ...(key === undefined ? [] : [key]), ...(data === undefined ? [] : [JSON.stringify(data)])].join('\n');
}

function originOf({ trust, toolTtlMs, now }: Pipeline, { source }: JobInput, sha256: string): Origin {
  return { source, sha256, trust, toolTtlMs, now: now() };
}

function rangeOf({ messages = [] }: MemoryFact, { range }: LearnInput): { from: number; to: number } {
  if (messages.length === 0) return { from: range.from, to: range.to };
  return { from: Math.min(...messages), to: Math.max(...messages) + 1 };
}

/** The tools' answers, without those of the memory tools: these are known memories. */
function withoutMemories({ position, message }: Said): Said[] {
  if (message.role !== 'tool') return [];
  const content = message.content.filter(({ toolResponse }) => !toolResponse || !isMemoryTool(toolResponse.name));
  return content.length > 0 ? [{ position, message: { ...message, content } }] : [];
}

function withoutToolParts({ position, message }: Said): Said {
  const content = message.content.filter(({ toolRequest, toolResponse }) => !toolRequest && !toolResponse);
  return { position, message: { ...message, content } };
}
