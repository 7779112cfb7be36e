import { generate } from '@genkit-ai/ai';
import type { GenerateResponseData, GenerationUsage } from 'genkit';
import { runInNewSpan, setCustomMetadataAttributes } from 'genkit/tracing';
import { ContextOverflowError, logError, logWarning, quote } from '../../errors.ts';
import { notify } from '../../store/parts/notify.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import { warnNotCompacted } from '../../session/compaction-request.ts';
import type { SessionCompactions } from '../compaction/session-compactions.ts';
import type { Compaction } from '../compaction/summarize.ts';
import type { Summarizer } from '../compaction/summarizer.ts';
import { fetchAll, type Sources } from '../fetch/fetch-all.ts';
import { assemble, type Assembled, type Assembly, type Fetched } from '../prepare/assemble.ts';
import { bounded } from '../prepare/report.ts';
import { Omissions, type SectionLimits } from '../prepare/sections.ts';
import { textOf } from '../../session/log/transcript.ts';
import type { MemoryBlock, SessionFacts } from '../../session/turn-memory.ts';
import type { Calibration } from '../tokens/calibration.ts';
import type { TokenCounter } from '../tokens/counter.ts';
import { inputLimitOf } from '../tokens/model-limits.ts';
import type {
  ContextReport,
  ContextWindow,
  HistoryStrategy,
  Summary,
  TurnWindow,
  WindowCall,
  WindowScope,
} from '../types.ts';
import { isLengthRefusal } from './length-refusal.ts';

/** How long a turn waits for the summaries: as long as for a source by default. */
const READ_DEADLINE_MS = 2_000;

/** The options of a window with their defaults, and its state across turns. */
export interface WindowSetting {
  readonly maxTokens: number | undefined;
  readonly strategies: readonly HistoryStrategy[];
  readonly limits: SectionLimits;
  readonly sources: Sources;
  readonly hasArtifacts: boolean;
  /** The `keepTurns` of {@link sessionMemories}; `undefined` without that strategy. */
  readonly keptTurns: number | undefined;
  readonly counter: TokenCounter;
  readonly calibration: Calibration;
  readonly compaction: Compaction | undefined;
  /** The summaries of a session; `undefined` if the window makes none, or the conversation has no id. */
  readonly compactionsOf: (scope: WindowScope) => SessionCompactions | undefined;
  readonly prefetch: ContextWindow['prefetch'];
  readonly settled: () => Promise<void>;
  readonly onReport: ((report: ContextReport) => void) | undefined;
}

/** A window during one turn: fetches once, then prepares and makes each model call. */
export class WindowTurn implements TurnWindow {
  readonly #setting: WindowSetting;
  readonly #scope: WindowScope;
  readonly #compactions: SessionCompactions | undefined;
  #fetched: Promise<Fetched[]> | undefined;
  #facts: SessionFacts | undefined;
  #hasRead = false;
  #calls = 0;
  #report: ContextReport | undefined;

  constructor(setting: WindowSetting, scope: WindowScope) {
    this.#setting = setting;
    this.#scope = scope;
    this.#compactions = setting.compactionsOf(scope);
  }

  get report(): ContextReport | undefined {
    return this.#report;
  }

  get summaryUsage(): GenerationUsage | undefined {
    return this.#compactions?.usage;
  }

  async call(call: WindowCall): Promise<GenerateResponseData> {
    const fetched = [...this.#artifacts(), ...(await (this.#fetched ??= this.#fetch(call)))];
    const { maxTokens = inputLimitOf(call.model, call.request.config), calibration } = this.#setting;
    const fit = () => this.#prepare(() => this.#fit(call, fetched, maxTokens));
    let assembled = await fit();
    if (assembled.report.dropped.length > 0 && (await this.#hasNewSummaries())) assembled = await fit();
    try {
      return await this.#send(call, assembled);
    } catch (error) {
      if (!isLengthRefusal(error)) throw error;
      const { estimatedTokens } = assembled.report;
      if (!hasMedia(assembled)) calibration.refuse(call.model, estimatedTokens);
      return await this.#retry(call, fetched, { refusal: error, refusedTokens: estimatedTokens });
    }
  }

  async afterTurn({ snapshotId, messages, isForced = false }: Parameters<TurnWindow['afterTurn']>[0]): Promise<void> {
    const { compaction } = this.#setting;
    if (!compaction || !this.#compactions) {
      if (isForced) warnNotCompacted(this.#scope.sessionId ?? '');
      return;
    }
    const { registry } = this.#scope;
    const summarizer: Summarizer = compaction.summarizer({ generate: (options) => generate(registry, options) });
    const compactions = this.#compactions;
    const upload = runInNewSpan({ metadata: { name: 'context-upload' } }, async () => {
      compactions.turnEnded({ messages, snapshotId, summarizer, isForced });
      await compactions.settled();
    });
    await upload.catch((error: unknown) => logError('The work of a context window after a turn failed.', error));
  }

  /** The names of the artifacts. Read for each call, because a tool may have added one. */
  #artifacts(): Fetched[] {
    const artifacts = this.#setting.hasArtifacts ? (this.#scope.artifacts?.() ?? []) : [];
    const texts = artifacts.flatMap(({ name, metadata }) => {
      const description: unknown = metadata?.['description'];
      return name === undefined ? [] : [typeof description === 'string' ? `${name}: ${description}` : name];
    });
    const items = texts.map((text) => ({ text }));
    return [{ section: 'artifacts', items, maxTokens: undefined, omissions: new Omissions() }];
  }

  /** Asks the sources and the memory, and reads the summaries, all at the same time. */
  async #fetch({ origins, abortSignal }: WindowCall): Promise<Fetched[]> {
    const { registry, sessionId, context, leafId, prefetched, memory } = this.#scope;
    const { sources, keptTurns } = this.#setting;
    const last = origins.findLast((message) => message?.role === 'user');
    const text = last ? textOf(last) : '';
    const log = origins.filter((message) => message !== undefined);
    const [fetched, blocks, facts, hasRead] = await Promise.all([
      fetchAll(
        memory ? { ...sources, memory: undefined } : sources,
        { text, registry, sessionId, context },
        abortSignal,
      ),
      memory?.blocks({ text, abortSignal }),
      keptTurns === undefined ? undefined : memory?.sessionFacts(log, keptTurns),
      this.#reading((compactions) => compactions.load(leafId, prefetched)),
    ]);
    this.#hasRead ||= hasRead;
    this.#facts = facts;
    return [...fetched, ...(blocks ?? []).map(fetchedBlock)];
  }

  /** Reads the summaries once before anything is dropped, unless the turn has read them at its beginning. */
  async #hasNewSummaries(): Promise<boolean> {
    if (this.#hasRead) return false;
    this.#hasRead = true;
    return this.#reading((compactions) => compactions.reload());
  }

  /** After a failure the turn does not read again. */
  async #reading(read: (compactions: SessionCompactions) => Promise<boolean>): Promise<boolean> {
    const compactions = this.#compactions;
    if (!compactions) return false;
    try {
      return await withinTime('The store', READ_DEADLINE_MS, undefined, () => read(compactions));
    } catch (error) {
      this.#hasRead = true;
      const session = quote(this.#scope.sessionId ?? '');
      logWarning(
        `The summaries of session ${session} could not be read; the turn continues without the summaries.`,
        error,
      );
      return false;
    }
  }

  #prepare(assembled: () => Assembled): Promise<Assembled> {
    return runInNewSpan({ metadata: { name: 'context-prepare' } }, async () => {
      const result = assembled();
      const { maxTokens, estimatedTokens, messages, sent } = result.report;
      const sentMessages = sent.reduce((sum, [from, to]) => sum + to - from, 0);
      setFigures({ maxTokens, estimatedTokens, messages, sentMessages });
      return result;
    });
  }

  /** A request within the budget. The flexible sections are cut further if the model is known to accept less. */
  #fit(call: WindowCall, fetched: readonly Fetched[], mostTokens: number): Assembled {
    const known = this.#setting.calibration.limitOf(call.model);
    return this.#assemble(call, fetched, { maxTokens: Math.min(known, mostTokens), mostTokens });
  }

  #assemble(
    { request, origins, model }: WindowCall,
    fetched: readonly Fetched[],
    budget: Pick<Assembly, 'maxTokens' | 'mostTokens'>,
  ): Assembled {
    const { strategies, limits, counter, calibration } = this.#setting;
    const log = origins.filter((message) => message !== undefined);
    const summaryBefore = (position: number): Summary | undefined =>
      this.#compactions?.inUse(this.#compactions.logOf(log), position);
    const factor = calibration.factorOf(model);
    const facts = this.#facts;
    return assemble({
      request,
      origins,
      strategies,
      limits,
      ...budget,
      counter,
      factor,
      summaryBefore,
      facts,
      fetched,
    });
  }

  /** Calls the model again with half of the refused tokens, or with more if the sections that can't be cut need more. */
  async #retry(
    call: WindowCall,
    fetched: readonly Fetched[],
    { refusal, refusedTokens }: { readonly refusal: unknown; readonly refusedTokens: number },
  ): Promise<GenerateResponseData> {
    const budget = { maxTokens: Math.floor(refusedTokens / 2), mostTokens: refusedTokens - 1 };
    const assembled = await this.#prepare(() => this.#assemble(call, fetched, budget)).catch((error: unknown) => {
      if (!ContextOverflowError.isInstance(error)) throw error;
      const { maxTokens, sections } = error;
      const reason =
        'The model refused the length of its input, and nothing more can be left out: the instructions, the tools and the current turn take as much. Shorten them, or use a model that accepts more.';
      throw overflow({ maxTokens, sections, reason }, refusal);
    });
    try {
      return await this.#send(call, { ...assembled, report: { ...assembled.report, hasRetried: true } });
    } catch (error) {
      if (!isLengthRefusal(error)) throw error;
      const { maxTokens, estimatedTokens, sections } = assembled.report;
      if (!hasMedia(assembled)) this.#setting.calibration.refuse(call.model, estimatedTokens);
      const tokens = Object.entries(sections).map(([name, section]) => [name, section.tokens] as const);
      const reason = 'The model refused the length of its input twice, the second time at half the budget.';
      throw overflow({ maxTokens, sections: Object.fromEntries(tokens), reason }, error);
    }
  }

  async #send({ model, next }: WindowCall, { request, report }: Assembled): Promise<GenerateResponseData> {
    const { calibration } = this.#setting;
    const factor = calibration.factorOf(model);
    this.#report = bounded({ ...(model !== undefined && { model }), ...report, calls: ++this.#calls });
    const response = await runInNewSpan({ metadata: { name: 'context-call' } }, async () => {
      const answer = await next(request);
      setFigures({ inputTokens: answer.usage?.inputTokens, outputTokens: answer.usage?.outputTokens });
      return answer;
    });
    const inputTokens = response.usage?.inputTokens;
    if (!hasMedia({ request })) calibration.learn(model, report.estimatedTokens / factor, inputTokens);
    if (inputTokens !== undefined && Number.isFinite(inputTokens)) {
      this.#report = bounded({ ...this.#report, inputTokens });
    }
    const { onReport } = this.#setting;
    // A copy: the report is kept with the snapshot.
    if (onReport) {
      const report = structuredClone(this.#report);
      notify(() => onReport(report), 'onReport of a context window failed; the turn continues.');
    }
    return response;
  }
}

/** A block of the agent's memory in the form of a source's result. */
function fetchedBlock({ title, place, items, maxTokens, omitted, reasons }: MemoryBlock): Fetched {
  const omissions = new Omissions(omitted, reasons);
  return { section: 'memory', title, place, items, maxTokens, omissions };
}

function overflow(of: ConstructorParameters<typeof ContextOverflowError>[0], cause: unknown): ContextOverflowError {
  return Object.assign(new ContextOverflowError(of), { cause });
}

/** Whether a request has media. Their tokens are a guess, so the calibration learns nothing from the request. */
function hasMedia({ request }: Pick<Assembled, 'request'>): boolean {
  return request.messages.some(({ content }) => content.some((part) => part.media !== undefined));
}

/** Writes figures into the current span. */
function setFigures(figures: Readonly<Record<string, number | undefined>>): void {
  const known = Object.entries(figures).filter(([, value]) => value !== undefined);
  setCustomMetadataAttributes(Object.fromEntries(known.map(([name, value]) => [`context:${name}`, String(value)])));
}
