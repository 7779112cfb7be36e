import type { GenerateRequest, MessageData } from 'genkit';
import { ContextOverflowError } from '../../errors.ts';
import type { TokenCounter } from '../tokens/counter.ts';
import { tokensOf, turnsOf } from '../turns.ts';
import type {
  ContextItem,
  ContextReport,
  FlexibleSection,
  HistoryItem,
  HistoryStrategy,
  Section,
  SectionReport,
  Summary,
} from '../types.ts';
import { markedLines } from '../../session/log/transcript.ts';
import { dataMessage, dataText, withSystemData, type DataPlace, type DataTitle } from '../../session/log/data-text.ts';
import type { SessionFacts } from '../../session/turn-memory.ts';
import { keptTurnsOf, newestFacts } from '../history/session-memories.ts';
import { HistorySection, rangesIn, waitingItems } from './choose-history.ts';
import { repaired } from './repair.ts';
import { fit, joined, ListSection, Omissions, type SectionLimits } from './sections.ts';

/** The texts that one source found. */
export interface Fetched {
  readonly section: Exclude<FlexibleSection, 'history' | 'summary'>;
  /** The title of the block. Default: the section's. */
  readonly title?: DataTitle;
  readonly items: readonly ContextItem[];
  readonly maxTokens: number | undefined;
  /** Where to place the block. Default: `before-prompt`. */
  readonly place?: DataPlace;
  readonly omissions: Omissions;
}

export interface Assembly {
  readonly request: GenerateRequest;
  /** The session's message behind each message of the request; `undefined` for one of the prompt. */
  readonly origins: readonly (MessageData | undefined)[];
  readonly strategies: readonly HistoryStrategy[];
  readonly limits: SectionLimits;
  /** The budget of the request. The flexible sections are cut to fit it. */
  readonly maxTokens: number;
  /** The sections that can't be cut may take this many tokens together. Default: `maxTokens`. */
  readonly mostTokens?: number;
  readonly counter: TokenCounter;
  /** Estimates are multiplied by it. */
  readonly factor: number;
  /** The newest summary of messages before this position; `undefined` if there is none. */
  readonly summaryBefore: (position: number) => Summary | undefined;
  /** The facts that were learned from the session; `undefined` without any. */
  readonly facts: SessionFacts | undefined;
  readonly fetched: readonly Fetched[];
}

/** A request that fits, and the report about it. */
export interface Assembled {
  readonly request: GenerateRequest;
  readonly report: ContextReport;
}

/** The words around the texts of a section, in tokens. */
const FRAME_TOKENS = 50;

/**
 * Returns a request that fits the budget. Pure: the same request gives the same result, and no argument is changed.
 *
 * The parts that change least come first: instructions, fixed examples, summary, history, data found for the turn, the turn itself.
 *
 * @throws ContextOverflowError
 */
export function assemble(assembly: Assembly): Assembled {
  const { request, maxTokens, mostTokens = maxTokens, counter, factor, limits } = assembly;
  const scaled = (tokens: number) => Math.ceil(tokens * factor);
  const countTokens = (message: MessageData) => scaled(counter.message(message));
  /** Of data, with the marks of its lines: of short lines they are a large part. */
  const countText = (text: string) => scaled(counter.text(markedLines(text)));
  const { before, log, sent, after } = partsOf(assembly);
  const turnStart = startOfTurn(log);

  const instructions = [...before, ...after];
  const fixed = {
    instructions: sum(instructions, countTokens) + otherInput(request, counter, scaled),
    tools: request.tools?.length ? scaled(counter.json(request.tools.map(declaration))) : 0,
    prompt: sum(log.slice(turnStart), countTokens),
  };
  const needed = fixed.instructions + fixed.tools + fixed.prompt;
  const room = Math.max(0, maxTokens - needed);

  const earlier = log.slice(0, turnStart);
  const all = earlier.map((message, position) => ({ position, message }));
  const waiting = new HistorySection(earlier, waitingItems(all), [], { countTokens, turnsOf });
  if (waiting.tokens > room) waiting.shrink(room, 'window');
  const isWaiting = new Set(waiting.items);

  const summary = assembly.summaryBefore(turnStart);
  const { facts, omittedFacts } = factsThatFit(assembly, all, { room, countTokens, countText });
  const tools = { countTokens, turnsOf, ...(summary && { summary }), ...(facts && { sessionMemories: facts }) };
  const others = isWaiting.size === 0 ? all : all.filter((item) => !isWaiting.has(item));
  const history = new HistorySection(earlier, others, assembly.strategies, tools);
  const lists = assembly.fetched.map(
    ({ section, title = section, items, maxTokens: most, place = 'before-prompt', omissions }) => {
      const list = new ListSection({ section, items, countText, frame: FRAME_TOKENS, omissions: omissions.copy() });
      if (most !== undefined && list.tokens > most) list.shrink(most, 'section');
      return { list, title, place };
    },
  );
  const summaries = new ListSection({
    section: 'summary',
    items: history.summary ? [history.summary] : [],
    countText,
    frame: FRAME_TOKENS,
    ...(history.summary === facts && { omissions: omittedFacts }),
  });
  const flexible = [...lists.map(({ list }) => list), summaries, history];
  const wanted = [...flexible, waiting].map(({ section, tokens }) => [section, tokens] as const);
  if (needed > Math.max(maxTokens, mostTokens)) throw overflow(mostTokens, fixed, wanted);
  fit(flexible, limits, room - waiting.tokens);

  const summaryInUse = summaries.texts.length > 0 ? history.summary : undefined;
  const dataAt = (at: DataPlace): string[] =>
    lists.flatMap(({ list, title, place }) =>
      place === at && list.texts.length > 0 ? [dataText(title, list.texts)] : [],
    );
  const beforeHistory = [...dataAt('before-history'), ...(summaryInUse ? [dataText('summary', summaries.texts)] : [])];
  const data = dataAt('before-prompt');
  const turn = sent.slice(turnStart);
  const promptAt = Math.max(
    0,
    turn.findLastIndex(({ role }) => role === 'user'),
  );
  const items = [
    ...new Map([...waiting.items, ...history.items].map((item) => [item.position, item])).values(),
  ].toSorted((a, b) => a.position - b.position);
  const conversation = repaired([
    ...(beforeHistory.length > 0 ? [dataMessage(beforeHistory)] : []),
    ...items.map(({ position, message }) => (message === log[position] ? sent[position]! : message)),
    ...turn.slice(0, promptAt),
    ...(data.length > 0 ? [dataMessage(data)] : []),
    ...turn.slice(promptAt),
  ]);

  const sections: Partial<Record<Section, SectionReport>> = {
    instructions: { tokens: fixed.instructions, items: instructions.length },
    ...(fixed.tools > 0 && { tools: { tokens: fixed.tools, items: request.tools!.length } }),
    prompt: { tokens: fixed.prompt, items: turn.length },
  };
  for (const section of [...flexible, waiting]) {
    const report = section.report();
    if (report) sections[section.section] = joined(sections[section.section], report);
  }
  const memories = lists.flatMap(({ list }) =>
    list.items.flatMap(({ id, revision = 0 }) => (id === undefined ? [] : [[id, revision] as const])),
  );
  const { changed, ...ranges } = rangesIn(earlier, items, summaryInUse);
  const report = {
    maxTokens: needed > maxTokens ? mostTokens : maxTokens,
    estimatedTokens: Object.values(sections).reduce((total, { tokens }) => total + tokens, 0),
    calls: 0,
    sections,
    messages: log.length,
    ...ranges,
    ...(changed.length > 0 && { changed }),
    ...(summaryInUse && { summary: { sha256: summaryInUse.sha256, to: summaryInUse.to } }),
    ...(memories.length > 0 && { memories }),
  };
  return {
    request: { ...request, messages: [...withSystemData(before, dataAt('system')), ...conversation, ...after] },
    report,
  };
}

/** The newest facts that leave the kept turns their room, and take no more than their share of the window. */
function factsThatFit(
  { facts, strategies, limits, maxTokens }: Assembly,
  earlier: readonly HistoryItem[],
  {
    room,
    countTokens,
    countText,
  }: { room: number; countTokens: (message: MessageData) => number; countText: (text: string) => number },
): { facts?: Summary | undefined; omittedFacts: Omissions } {
  const omittedFacts = new Omissions();
  if (!facts || facts.to > earlier.length) return { omittedFacts };
  const turns = turnsOf(earlier);
  const kept = turns.slice(Math.max(0, turns.length - (keptTurnsOf(strategies) ?? 0))).flat();
  const left = room - tokensOf(kept, countTokens);
  const most = Math.min(left, limits.summary?.maxTokens ?? Math.floor(maxTokens / 4));
  const { newest, omitted } = newestFacts(facts, Math.max(0, most - FRAME_TOKENS), countText);
  omittedFacts.add(omitted, 'window');
  return { facts: newest, omittedFacts };
}

/** Splits the messages: the prompt's before and after the session's, and the session's as stored (`log`) and as sent. */
function partsOf({ request: { messages }, origins }: Assembly) {
  const before: MessageData[] = [];
  const after: MessageData[] = [];
  const log: MessageData[] = [];
  const sent: MessageData[] = [];
  const last = origins.findLastIndex((origin) => origin !== undefined);
  messages.forEach((message, i) => {
    const origin = origins[i];
    if (origin) {
      log.push(origin);
      sent.push(message);
    } else if (i < last) before.push(message);
    else after.push(message);
  });
  return { before, log, sent, after };
}

/**
 * The index at which the current turn begins: the last user message. If the message before it is a tool request without an answer, the
 * turn of that request is part of the current one.
 */
function startOfTurn(log: readonly MessageData[]): number {
  const last = log.findLastIndex(({ role }) => role === 'user');
  if (last < 0) return log.length;
  const isWaiting = log[last - 1]?.role === 'model' && log[last - 1]!.content.some((part) => part.toolRequest);
  if (!isWaiting) return last;
  return Math.max(
    0,
    log.findLastIndex(({ role }, i) => i < last && role === 'user'),
  );
}

/** Tokens of the documents and of the output schema, which are sent as well. */
function otherInput(
  { docs, output }: GenerateRequest,
  counter: TokenCounter,
  scaled: (tokens: number) => number,
): number {
  const documents = (docs ?? []).reduce(
    (total, { content }) => total + counter.message({ role: 'user', content: content }),
    0,
  );
  return scaled(documents + (output?.schema ? counter.text(JSON.stringify(output.schema)) : 0));
}

/** The part of a tool that providers send to the model. */
function declaration({ name, description, inputSchema }: NonNullable<GenerateRequest['tools']>[number]) {
  return { name, description, inputSchema };
}

function sum(messages: readonly MessageData[], countTokens: (message: MessageData) => number): number {
  return messages.reduce((total, message) => total + countTokens(message), 0);
}

function overflow(
  maxTokens: number,
  fixed: Readonly<Record<string, number>>,
  wanted: readonly (readonly [string, number])[],
): ContextOverflowError {
  const sections = Object.fromEntries([...Object.entries(fixed), ...wanted].filter(([, tokens]) => tokens > 0));
  return new ContextOverflowError({
    maxTokens,
    sections,
    reason:
      'The instructions, the tools and the current turn do not fit the context window. Shorten them, or raise maxTokens.',
  });
}
