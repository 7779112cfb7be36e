import { GenkitError, type ToolArgument } from 'genkit';
import { logger } from 'genkit/logging';
import { describeThrown, failedPrecondition, invalidArgument, quote } from '../../errors.ts';
import { checkOptions, isBoolean, isObject, isText, LONGEST_TIMER_MS } from '../../store/check-options.ts';
import type { StartedSearch } from '../../session/turn-memory.ts';
import type { SnapshotStore } from '../../store/contract.ts';
import type { MemoryManager } from '../manager.ts';
import { scopeFor, tenantKeyOf, type MemoryScope } from '../scopes.ts';
import type { IngestWhile } from '../pipeline/ingest/ingest.ts';
import { readSession, type SessionToLearn } from '../pipeline/ingest/read-session.ts';
import type { MemorySessions } from '../pipeline/ingest/mark-as-read.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { IngestResult } from '../types.ts';
import { AttachedTurn, type TurnParts } from './attached-turn.ts';
import { memoryMiddleware } from './middleware.ts';
import { memoryTools, type FindByWords } from './memory-tools.ts';
import { Retrieval } from './retrieval.ts';
import { settleAttach, type AttachSettings } from './attach-settings.ts';
import { Triggers } from './triggers.ts';
import type {
  AttachedMemory,
  AttachOptions,
  EndedSession,
  EndedTurn,
  MemoryTurnScope,
  OpenedTurn,
  RememberingAgent,
} from './types.ts';

/** The parts of a manager that an attachment uses besides the public methods. */
export interface ManagerParts {
  readonly pipeline: Pipeline;
  readonly ingest: IngestWhile;
  readonly isClosed: () => boolean;
  readonly findByWords: FindByWords;
  /** The stores in which the manager finds sessions. An attachment adds the stores of its agents. */
  readonly stores: Set<SnapshotStore>;
  /** The sessions in which `processMemoryJobs` looks for messages that were not enqueued. */
  readonly sessions: Set<MemorySessions>;
}

const NO_USER_WARNING =
  "The context of a call names no user, so no user memories are used or learned. Pass the context that the server authenticated, such as agent.chat({}, { context: { auth: { uid: 'ada' } } }). This is logged once.";

/** The memory that `memory.attach` returns. */
export class Attachment implements AttachedMemory {
  readonly deadlineMs: number;
  readonly #manager: MemoryManager;
  readonly #settings: AttachSettings;
  readonly #triggers: Triggers;
  readonly #turnParts: TurnParts;
  readonly #parts: ManagerParts;
  /** The stores of the agents with this memory, each with the names of these agents. */
  readonly #agents = new Map<SnapshotStore, Set<string>>();
  readonly #redactions = new Set<(text: string) => Promise<string>>();
  #hasWarnedOfNoUser = false;

  constructor(manager: MemoryManager, parts: ManagerParts, options: AttachOptions) {
    const settings = settleAttach(options);
    this.#manager = manager;
    this.#parts = parts;
    this.#settings = settings;
    const { topics, isSuccess, triggers, limits } = parts.pipeline;
    // Longer than the time limit of the application's `redact`, so that its error is reported first.
    this.#triggers = new Triggers(parts, triggers, Math.min(2 * limits.timeoutMs, LONGEST_TIMER_MS));
    // Longer than the deadlines of the search and the profile together: these end first, and return the data found so far.
    this.deadlineMs = Math.min(2 * settings.deadlineMs + 1_000, LONGEST_TIMER_MS);
    this.#turnParts = {
      settings,
      retrieval: new Retrieval(manager, settings),
      tools: memoryTools({
        manager,
        settings,
        topics,
        hasProcedures: isSuccess !== undefined,
        scopesOf: (turn) => this.#scopesOf(turn),
        findByWords: parts.findByWords,
        redact: (text) => this.#redact(text),
      }),
      pipeline: parts.pipeline,
    };
  }

  tools(): ToolArgument[] {
    // The messages of the call are unknown here, so assume that a tool has answered.
    return this.#turnParts.tools({ hasToolAnswered: () => true });
  }

  middleware(): ReturnType<AttachedMemory['middleware']> {
    return memoryMiddleware((turn) => this.openTurn(turn));
  }

  async fetch({ text, sessionId, context, abortSignal }: Parameters<AttachedMemory['fetch']>[0]) {
    const blocks = await this.openTurn({ sessionId, context }).blocks({ text, abortSignal });
    return blocks.flatMap(({ items }) => items);
  }

  async endSession(ended: EndedSession): Promise<IngestResult> {
    checkOptions('endSession', ended, { sessionId: isText, context: isObject, wait: isBoolean });
    if (ended?.sessionId === undefined)
      throw invalidArgument('endSession needs a sessionId: endSession({ sessionId, context }).');
    const { sessionId, context, wait = false } = ended;
    const scope = this.#learnedInto({ sessionId, context });
    if (!scope || !this.#parts.pipeline.triggers.onSessionEnd) return { status: 'known', jobIds: [] };
    this.#triggers.stop(this.#keyOf(scope, sessionId));
    return this.#manager.ingest({ scope, sessionId, wait });
  }

  /** @internal */
  prefetch({ text, abortSignal, ...turn }: Parameters<AttachedMemory['prefetch']>[0]): StartedSearch | undefined {
    if (turn.sessionId === undefined && this.#settings.scopes.includes('session')) return undefined;
    const scopes = this.#scopesOf(turn);
    return scopes.length === 0
      ? undefined
      : { text, finding: this.#turnParts.retrieval.find(scopes, text, abortSignal) };
  }

  /** @internal */
  openTurn(turn: OpenedTurn): AttachedTurn {
    return new AttachedTurn(this.#turnParts, () => this.#scopesOf(turn), turn);
  }

  /** @internal */
  serve({ name, hasUserId, store, redact }: RememberingAgent): void {
    const { scopes, learn } = this.#settings;
    if (store && learn && scopes[0] === 'user' && hasUserId !== this.#parts.pipeline.hasUserId)
      throw failedPrecondition(
        `Agent ${quote(name)} and its memory determine the user differently. Pass the same userId to the agent (or agentRuntime) and to memoryManager.`,
      );
    if (redact) this.#redactions.add(redact);
    if (!store) return;
    const known = this.#agents.get(store);
    if (known) return void known.add(name);
    const names = new Set([name]);
    this.#agents.set(store, names);
    this.#parts.stores.add(store);
    if (!learn) return;
    const { appName } = this.#parts.pipeline;
    this.#parts.sessions.add({
      store,
      agents: names,
      scopeOf: ({ sessionId, ownerId: userId }, context) => {
        const kind = scopes[0]!;
        if (kind === 'user' && userId === undefined) return undefined;
        return scopeFor(kind, { context, appName, userId, sessionId });
      },
    });
  }

  /** @internal */
  afterTurn({ sessionId, context, snapshotId, messages, isOwn, store }: EndedTurn): Promise<void> | undefined {
    try {
      const scope = this.#learnedInto({ sessionId, context });
      if (!scope || (scope.kind === 'user' && !isOwn)) return undefined;
      const session: SessionToLearn = { scope, sessionId, snapshotId, messages };
      const later = store ? () => readSession(store, scope, sessionId) : async () => session;
      return this.#triggers.turnEnded(this.#keyOf(scope, sessionId), session, later);
    } catch (error) {
      logger.warn(`Nothing was learned from session ${quote(sessionId)}. ${describeThrown(error)}`);
      return undefined;
    }
  }

  /** Redacts a text as the agents' stores do, because the messages of a running turn are not redacted yet. */
  async #redact(text: string): Promise<string> {
    let kept = text;
    for (const redact of this.#redactions) kept = await redact(kept);
    return kept;
  }

  /**
   * The scope that gets new memories: the first configured one. `undefined` if the caller does not have it, because facts about a user must
   * not go to another scope when no user is signed in.
   */
  #learnedInto(turn: MemoryTurnScope): MemoryScope | undefined {
    const { learn, scopes } = this.#settings;
    const [scope] = learn ? this.#scopesOf(turn) : [];
    return scope?.kind === scopes[0] ? scope : undefined;
  }

  #keyOf(scope: MemoryScope, sessionId: string): string {
    return JSON.stringify([tenantKeyOf(this.#manager.store, scope), sessionId]);
  }

  /** The caller's scopes. Without a user there is no user scope, without a session no session scope. */
  #scopesOf({ sessionId, context }: MemoryTurnScope): MemoryScope[] {
    return this.#settings.scopes.flatMap((kind) => {
      if (kind === 'session' && sessionId === undefined) return [];
      try {
        return [this.#manager.scopeFor(kind, { context, ...(sessionId !== undefined && { sessionId }) })];
      } catch (error) {
        if (!(error instanceof GenkitError && error.status === 'UNAUTHENTICATED'))
          logger.warn(
            `The turn has no memories, because their scope could not be determined. ${describeThrown(error)}`,
          );
        else if (!this.#hasWarnedOfNoUser) {
          logger.warn(NO_USER_WARNING);
          this.#hasWarnedOfNoUser = true;
        }
        return [];
      }
    });
  }
}
