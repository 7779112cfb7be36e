import type { GenerateRequest, MessageData, ToolArgument } from 'genkit';
import { logger } from 'genkit/logging';
import { setCustomMetadataAttributes } from 'genkit/tracing';
import { logWarning } from '../../errors.ts';
import { textOf } from '../../session/log/transcript.ts';
import type { MemoryBlock, PlacedCall, SessionFacts, TurnMemory } from '../../session/turn-memory.ts';
import { notify } from '../../store/parts/notify.ts';
import { isMemoryTool } from '../memory-tool-names.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { MemoryScope } from '../scopes.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import type { MakeTools } from './memory-tools.ts';
import { placeBlocks } from './place.ts';
import type { Retrieval } from './retrieval.ts';
import { sessionFacts } from './session-facts.ts';
import type { AttachSettings } from './attach-settings.ts';
import type { MemoryTurnReport, OpenedTurn } from './types.ts';

/** The parts that all turns of an attached memory share. */
export interface TurnParts {
  readonly settings: AttachSettings;
  readonly retrieval: Retrieval;
  readonly tools: MakeTools;
  readonly pipeline: Pick<Pipeline, 'store' | 'now'>;
}

/** One turn: searches once, and places the found memories in each model call. */
export class AttachedTurn implements TurnMemory {
  readonly #parts: TurnParts;
  readonly #scopesOf: () => readonly MemoryScope[];
  readonly #turn: OpenedTurn;
  #hasToolAnswered = false;
  #blocks: Promise<readonly MemoryBlock[]> | undefined;

  /** @param scopesOf Returns the scopes of the turn. Not called if the search was started before. */
  constructor(parts: TurnParts, scopesOf: () => readonly MemoryScope[], turn: OpenedTurn) {
    this.#parts = parts;
    this.#scopesOf = scopesOf;
    this.#turn = turn;
  }

  tools(): ToolArgument[] {
    return this.#parts.tools({ hasToolAnswered: () => this.#hasToolAnswered, snapshotId: this.#turn.snapshotId });
  }

  noteRequest({ messages }: GenerateRequest): void {
    this.#hasToolAnswered = hasToolAnswers(messages);
  }

  blocks({ text, abortSignal }: Parameters<TurnMemory['blocks']>[0]): Promise<readonly MemoryBlock[]> {
    return (this.#blocks ??= this.#find(text, abortSignal));
  }

  async place({ request, origins, abortSignal }: PlacedCall): Promise<GenerateRequest> {
    const last = origins.findLast((message) => message?.role === 'user');
    const blocks = await this.blocks({ text: last ? textOf(last) : '', abortSignal });
    return placeBlocks(request, origins, blocks);
  }

  async sessionFacts(messages: readonly MessageData[], keepTurns: number): Promise<SessionFacts | undefined> {
    const [scope] = this.#scopesOf();
    const { sessionId } = this.#turn;
    if (sessionId === undefined || !scope) return undefined;
    const { pipeline, settings } = this.#parts;
    try {
      return await withinTime('The memory store', settings.deadlineMs, undefined, () =>
        sessionFacts(pipeline, scope, sessionId, messages, keepTurns),
      );
    } catch (error) {
      logWarning('The facts learned from the session could not be read. The turn continues without them.', error);
      return undefined;
    }
  }

  async #find(text: string, abortSignal: AbortSignal | undefined): Promise<readonly MemoryBlock[]> {
    const start = performance.now();
    const started = await this.#turn.started;
    const scopes = started?.text === text ? undefined : this.#scopesOf();
    if (scopes?.length === 0) return [];
    const { blocks, noteUse } = await (scopes
      ? this.#parts.retrieval.find(scopes, text, abortSignal)
      : started!.finding);
    noteUse();
    const report = reportOf(this.#turn.sessionId, blocks);
    noteInSpan({
      'memory:placed': `${report.memories.length}`,
      'memory:missing': report.reasons.join(' '),
      'memory:ms': (performance.now() - start).toFixed(1),
    });
    this.#notify(report);
    return blocks;
  }

  #notify(report: MemoryTurnReport): void {
    const { onReport } = this.#parts.settings;
    if (onReport) notify(() => onReport(report), 'onReport of memory.attach failed; the turn continues.');
    else if (report.reasons.includes('deadline')) {
      logger.warn('The memory search of a turn was too slow. The turn continues with the memories found so far.');
    }
  }
}

/** Sets attributes of the turn's span. A separate span would take as long as the search. */
function noteInSpan(attributes: Record<string, string>): void {
  try {
    setCustomMetadataAttributes(attributes);
  } catch {
    // Without a span there is nothing to note.
  }
}

function reportOf(sessionId: string | undefined, blocks: readonly MemoryBlock[]): MemoryTurnReport {
  const found = blocks.flatMap(({ items }) => items);
  return {
    sessionId,
    memories: found.flatMap(({ id, revision }) => (id === undefined ? [] : [[id, revision ?? 0] as const])),
    hasProfile: blocks.some(({ title, items }) => title === 'profile' && items.length > 0),
    omitted: blocks.reduce((sum, { omitted }) => sum + omitted, 0),
    reasons: [...new Set(blocks.flatMap(({ reasons }) => reasons))],
  };
}

/** Whether a tool, other than the memory tools, has answered since the user's message. */
function hasToolAnswers(messages: readonly MessageData[]): boolean {
  const start = messages.findLastIndex(({ role }) => role === 'user');
  return messages
    .slice(start + 1)
    .some(({ content }) => content.some(({ toolResponse }) => toolResponse && !isMemoryTool(toolResponse.name)));
}
