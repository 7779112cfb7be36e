import type { MessageData, Part } from 'genkit';
import { failedPrecondition } from '../../../errors.ts';
import { jsonEqual } from '../../../json/value.ts';
import { messageText } from '../../../session/log/transcript.ts';
import type { MemorySource } from '../../../store/memory/contract.ts';
import { isMemoryTool } from '../../memory-tool-names.ts';
import type { ScopeTarget } from '../../scopes.ts';
import type { MemoryFact } from '../../types.ts';
import { procedureText } from './procedures.ts';
import type { Guard } from '../guard/judge-text.ts';
import { redactFact, redactJson } from '../guard/redact.ts';
import { checkFacts, toFact } from '../records/check-facts.ts';
import type { Quarantined } from '../records/quarantine-note.ts';
import { sha256Of, type FactsInput, type JobInput, type LearnInput } from '../records/job-input.ts';
import type { Pipeline } from '../pipeline.ts';
import { withinTime } from '../../../store/parts/within-time.ts';
import type { AskModel } from '../ask-model.ts';
import { candidateOf, MAX_VERBATIM, type Candidate, type Origin } from '../records/candidate.ts';
import { distillProcedure, extractFacts, withoutPersons, type Extracted } from './extract.ts';

/** The result of learning: candidates, quarantined texts, and the new summary. */
export interface Learned {
  readonly candidates: readonly Candidate[];
  readonly quarantined: readonly Quarantined[];
  /** The number of facts that only the assistant states, or that fit no topic. */
  readonly ignored?: number;
  readonly summary?: string | undefined;
}

/** The scope to learn into, the model, and the guard. */
export interface LearnContext extends ScopeTarget {
  readonly ask: AskModel | undefined;
  readonly signal: AbortSignal;
  readonly guard: Guard;
}

/** A message and its index in its session. */
interface PlacedMessage {
  readonly position: number;
  readonly message: MessageData;
}

/** Finds the facts to remember in a job's input, and checks all texts with the guards. */
export async function learn(
  pipeline: Pipeline,
  context: LearnContext,
  input: JobInput,
  summary: string | undefined,
): Promise<Learned> {
  const learned =
    input.task === 'facts'
      ? { candidates: candidatesOfFacts(pipeline, input), quarantined: [] }
      : await learnFromMessages(pipeline, context, input, summary);
  // Only the approved text itself may reach all users of an app. The facts of an approved message wait for approval again.
  if (input.isApproved && (input.task === 'facts' || context.scope.kind !== 'app')) return learned;
  const candidates =
    context.scope.kind === 'app' && context.ask
      ? await rewriteWithoutPersons(context.ask, learned.candidates)
      : learned.candidates;
  return guardCandidates(pipeline, context, { ...learned, candidates }, input);
}

function candidatesOfFacts(pipeline: Pipeline, input: FactsInput): Candidate[] {
  const { now, toolTtlMs } = pipeline;
  const approvedAt = new Date(now()).toISOString();
  // A tool's fact may have expired while it waited, so its lifetime begins with the approval.
  const expiresAt = new Date(now() + toolTtlMs).toISOString();
  const hasDefaultExpiry = ({ source: { type, at }, expiresAt: end = '' }: Candidate) =>
    type === 'tool' && Date.parse(end) === Date.parse(at) + toolTtlMs;
  const origin = originOf(pipeline, input, input.sha256);
  const type = input.source.type ?? 'bootstrap';
  return input.facts.map((fact) => {
    if (!('source' in fact)) return candidateOf(fact, type, {}, origin);
    return { ...fact, approvedAt, ...(hasDefaultExpiry(fact) && { expiresAt }) };
  });
}

async function learnFromMessages(
  pipeline: Pipeline,
  context: LearnContext,
  input: LearnInput,
  summary: string | undefined,
): Promise<Learned> {
  const { source, range, task } = input;
  const isVerbatim = task === 'verbatim' || (task === 'learn' && pipeline.extract === 'verbatim');
  const readsTools = task === 'procedure' || (!isVerbatim && (pipeline.learnFromTools || input.isApproved));
  // The assistant's messages are only context for the extraction, so they are not checked here. Extracted facts are checked.
  const checksAssistant = task === 'procedure' || isVerbatim || source.type !== undefined;
  const quarantined: Quarantined[] = [];
  const passed: PlacedMessage[] = [];
  for (const [i, message] of input.messages.entries()) {
    const position = range.from + i;
    const text = messageText(message);
    if (text === '' || (message.role === 'system' && source.type === undefined)) continue;
    if (message.role === 'tool' && !readsTools) continue;
    const type = message.role === 'tool' ? 'tool' : 'implicit';
    const isChecked = !input.isApproved && (message.role !== 'model' || checksAssistant);
    const reason = isChecked ? await context.guard(text, 'message', type) : undefined;
    if (reason === undefined) passed.push({ position, message });
    else quarantined.push({ reason, at: new Date(pipeline.now()).toISOString(), source, message, position, task });
  }
  const origin = originOf(pipeline, input, input.sha256s.at(-1)!);
  if (task === 'procedure') {
    const candidates = passed.length === 0 ? [] : [await procedureCandidate(pipeline, context, input, passed, origin)];
    return { candidates, quarantined };
  }
  // Learn from the outputs of tools separately from the messages of people and the assistant.
  const said = passed.filter(({ message }) => message.role !== 'tool').map(withoutToolParts);
  if (isVerbatim) return { candidates: said.map((one) => verbatimCandidate(input, one, origin)), quarantined };
  const { facts, summary: next, ...found } = await extract(pipeline, context, said, source.at, summary);
  const candidates = facts.flatMap((fact) => {
    const type = source.type ?? typeOfFact(fact, said);
    return type === undefined ? [] : [candidateOf(fact, type, rangeOf(fact, input), origin)];
  });
  const answers = passed.flatMap(toolAnswers);
  const unsaid = facts.length - candidates.length;
  const fromTools = await extract({ ...pipeline, summary: false }, context, answers, source.at, undefined);
  for (const fact of fromTools.facts) candidates.push(candidateOf(fact, 'tool', rangeOf(fact, input), origin));
  return { candidates, quarantined, ignored: found.ignored + unsaid + fromTools.ignored, summary: next };
}

/** Extracts the facts in messages with the application's extractor or the model, and redacts them. */
async function extract(
  pipeline: Pipeline,
  context: LearnContext,
  placed: readonly PlacedMessage[],
  at: string,
  summary: string | undefined,
): Promise<Extracted> {
  const found = await extractUnredacted(pipeline, context, placed, at, summary);
  const { redact } = pipeline;
  const isPlaced = (wanted: number) => placed.some(({ position }) => position === wanted);
  const facts = found.facts.map((fact) => redactFact({ ...fact, messages: fact.messages?.filter(isPlaced) }, redact));
  return {
    ...found,
    facts: await Promise.all(facts),
    summary: found.summary === undefined ? undefined : await redact(found.summary),
  };
}

async function extractUnredacted(
  { extract: extractor, topics, limits, summary: keepsSummary }: Pipeline,
  { scope, ask, signal }: LearnContext,
  placed: readonly PlacedMessage[],
  at: string,
  summary: string | undefined,
): Promise<Extracted> {
  if (placed.length === 0) return { facts: [], ignored: 0, summary: undefined };
  const messages = placed.map(({ message }) => message);
  const positions = placed.map(({ position }) => position);
  if (typeof extractor === 'function') {
    const found = await withinTime('extract', limits.timeoutMs, signal, async (abortSignal) =>
      extractor({ scope, messages: messages.map(withReadTexts), positions, abortSignal }),
    );
    checkFacts('extract: result', found);
    return { facts: found.map(toFact), ignored: 0, summary: undefined };
  }
  // An app has no summary, because it would reach all users without approval.
  const summaryLength = keepsSummary && scope.kind !== 'app' ? limits.summaryLength : 0;
  return extractFacts(mustAsk(ask), { topics, messages, positions, at, summary, summaryLength });
}

/** Cuts the long texts of a message to the length that the guards have read. */
function withReadTexts(message: MessageData): MessageData {
  const read = (part: Part) =>
    part.text === undefined ? part : { ...part, text: messageText({ ...message, content: [part] }) };
  return { ...message, content: message.content.map(read) };
}

/** Throws without a model. The job may come from a process that has one. */
function mustAsk(ask: AskModel | undefined): AskModel {
  if (ask) return ask;
  throw failedPrecondition('This memory job needs a model, but the memory manager of this process has no model.');
}

async function procedureCandidate(
  { redact }: Pipeline,
  { ask }: LearnContext,
  { source, range: { from, to } }: LearnInput,
  placed: readonly PlacedMessage[],
  origin: Origin,
): Promise<Candidate> {
  const messages = placed.map(({ message }) => message);
  const { task, steps } = await redactJson(await distillProcedure(mustAsk(ask), messages), redact);
  const text = procedureText(task, steps);
  const fact: MemoryFact = { kind: 'procedural', text, data: { task, steps }, schemaId: 'procedure' };
  return candidateOf(fact, source.type ?? 'implicit', { from, to }, origin);
}

function verbatimCandidate(input: LearnInput, { position, message }: PlacedMessage, origin: Origin): Candidate {
  const source = { ...origin.source, sessionId: input.source.sessionId ?? input.source.id };
  const fact = { text: messageText(message) };
  const range = { from: position, to: position + 1 };
  const type = input.source.type ?? 'implicit';
  // The id is the same in each attempt, so that a message becomes one memory even if an earlier attempt has committed it.
  const id = `said-${sha256Of([source.id, position, input.sha256s[position - input.range.from]])}`;
  return { ...candidateOf(fact, type, range, { ...origin, source }, MAX_VERBATIM), id, role: message.role };
}

/**
 * Rewrites candidates of an app, so that they contain nothing about persons. A candidate whose text changes loses its data, because the
 * data may also name persons.
 */
async function rewriteWithoutPersons(ask: AskModel, candidates: readonly Candidate[]): Promise<Candidate[]> {
  const given = candidates.map(({ text }) => text);
  const texts = await withoutPersons(ask, given);
  return candidates.map((candidate, i) => {
    const text = texts[i]!;
    if (text === candidate.text) return candidate;
    const { data: _, schemaId: __, source, ...rest } = candidate;
    const { data: ___, ...origin } = source;
    return { ...rest, text, source: { ...origin, statement: text } };
  });
}

/** Quarantines the candidates that a guard stops, and all candidates of an app. */
async function guardCandidates(
  pipeline: Pipeline,
  context: LearnContext,
  learned: Learned,
  { task, source }: JobInput,
): Promise<Learned> {
  const quarantined = [...learned.quarantined];
  const candidates: Candidate[] = [];
  for (const candidate of learned.candidates) {
    const reason =
      (await context.guard(candidateText(candidate), 'memory', candidate.source.type)) ??
      (context.scope.kind === 'app' ? 'It waits for approval, because all users of the app will read it.' : undefined);
    if (reason === undefined || (task === 'procedure' && (await isRemembered(pipeline, context, candidate))))
      candidates.push(candidate);
    else quarantined.push({ reason, at: new Date(pipeline.now()).toISOString(), source, candidate });
  }
  return { ...learned, candidates, quarantined };
}

/** Whether a memory equals the candidate word for word. Then the guards or a person have accepted it before. */
async function isRemembered(
  { nearest }: Pipeline,
  { scope, signal }: LearnContext,
  { kind, source: { statement, data } }: Candidate,
): Promise<boolean> {
  const near = await nearest(scope, statement, { kind, abortSignal: signal });
  return near.some(({ sources }) =>
    sources.some((source) => source.statement === statement && jsonEqual(source.data, data)),
  );
}

function candidateText({ text, data, key }: Candidate): string {
  return [text, ...(key === undefined ? [] : [key]), ...(data === undefined ? [] : [JSON.stringify(data)])].join('\n');
}

function originOf({ trust, toolTtlMs, now }: Pipeline, { source, isApproved }: JobInput, sha256: string): Origin {
  return { source, sha256, trust, toolTtlMs, from: isApproved ? now() : Date.parse(source.at) };
}

/** Returns the source type of a fact from messages; `undefined` if only the assistant states the fact. */
function typeOfFact(
  { messages = [], isExplicit }: MemoryFact,
  said: readonly PlacedMessage[],
): MemorySource['type'] | undefined {
  const roles = said.flatMap(({ position, message }) => (messages.includes(position) ? message.role : []));
  // A fact that only the assistant states may come from a tool.
  if (roles.length > 0 && !roles.includes('user')) return undefined;
  return isExplicit ? 'explicit' : 'implicit';
}

/** Returns the range of the messages that state a fact. Default: all messages of the job. */
function rangeOf({ messages = [] }: MemoryFact, { range }: LearnInput): { from: number; to: number } {
  if (messages.length === 0) return { from: range.from, to: range.to };
  return { from: Math.min(...messages), to: Math.max(...messages) + 1 };
}

/** Returns the outputs of tools. Omits the memory tools, because their outputs are known memories. */
function toolAnswers({ position, message }: PlacedMessage): PlacedMessage[] {
  if (message.role !== 'tool') return [];
  const content = message.content.filter(({ toolResponse }) => !toolResponse || !isMemoryTool(toolResponse.name));
  return content.length > 0 ? [{ position, message: { ...message, content } }] : [];
}

function withoutToolParts({ position, message }: PlacedMessage): PlacedMessage {
  const content = message.content.filter(({ toolRequest, toolResponse }) => !toolRequest && !toolResponse);
  return { position, message: { ...message, content } };
}
