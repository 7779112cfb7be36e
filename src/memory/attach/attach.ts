import { GenkitError, type ToolArgument } from 'genkit';
import { logger } from 'genkit/logging';
import { describeThrown, quote } from '../../errors.ts';
import type { SnapshotStore } from '../../store/contract.ts';
import { tenantScopeKey } from '../../store/memory/scope.ts';
import type { MemoryManager } from '../manager.ts';
import { userScope, sessionScope, appScope, targetOf, type MemoryScope } from '../scopes.ts';
import type { IngestWhile } from '../pipeline/ingest/ingest.ts';
import type { MemorySessions } from '../pipeline/jobs/process-jobs.ts';
import type { IngestResult, MemoryTopic, MemoryTriggers } from '../types.ts';
import { memoryMiddleware } from './middleware.ts';
import { memoryTools } from './memory-tools.ts';
import { Retrieval } from './retrieve.ts';
import { sessionFacts } from './session-facts.ts';
import { settleAttach, type AttachSettings } from './settings.ts';
import { readSession, type SessionToLearn } from './read-session.ts';
import { Triggers } from './triggers.ts';
import { AttachedTurn, type TurnSetting } from './turn-memory.ts';
import type {
  AttachedMemory,
  AttachOptions,
  EndedSession,
  EndedTurn,
  MemoryMiddlewareOptions,
  MemoryTurnScope,
  RememberingAgent,
} from './types.ts';

/** What an attachment has of its manager besides its public methods. */
export interface ManagerParts {
  readonly appName: string;
  readonly triggers: Required<MemoryTriggers>;
  readonly topics: readonly MemoryTopic[];
  readonly hasProcedures: boolean;
  readonly ingest: IngestWhile;
  /** Where the manager looks for sessions; gets the stores of agents. */
  readonly stores: Set<SnapshotStore>;
  /** Where `processMemoryJobs` looks for what was never enqueued. */
  readonly sessions: Set<MemorySessions>;
}

/** What `memory.attach` makes. */
export class Attachment implements AttachedMemory {
  readonly deadlineMs: number;
  readonly #manager: MemoryManager;
  readonly #settings: AttachSettings;
  readonly #triggers: Triggers;
  readonly #turns: TurnSetting;
  readonly #parts: ManagerParts;
  readonly #stores = new Set<SnapshotStore>();
  readonly #redactions = new Set<(text: string) => Promise<string>>();

  constructor(manager: MemoryManager, parts: ManagerParts, options: AttachOptions) {
    const settings = settleAttach(options);
    this.#manager = manager;
    this.#parts = parts;
    this.#settings = settings;
    const { topics, hasProcedures, ingest, triggers } = parts;
    this.#triggers = new Triggers(ingest, triggers);
    const scopesOf = (turn: MemoryTurnScope) => this.#scopesOf(turn);
    // A search and then the profile, each within the deadline; it is not to be cut off before it answers what is there.
    this.deadlineMs = 2 * settings.deadlineMs + 1_000;
    this.#turns = {
      settings,
      retrieval: new Retrieval(manager, settings),
      tools: memoryTools({ manager, settings, topics, hasProcedures, scopesOf, redact: (text) => this.#redact(text) }),
      factsOf: async (scopes, sessionId, messages, keepTurns) =>
        scopes[0] && sessionFacts(manager.store, scopes[0], sessionId, messages, keepTurns),
    };
  }

  tools(): ToolArgument[] {
    // What was said since the user spoke is not known here.
    return this.#turns.tools(() => false);
  }

  middleware(options: MemoryMiddlewareOptions = {}): ReturnType<AttachedMemory['middleware']> {
    return memoryMiddleware((turn) => this.openTurn(turn), options);
  }

  async fetch({ text, sessionId, context, abortSignal }: Parameters<AttachedMemory['fetch']>[0]) {
    const blocks = await this.openTurn({ sessionId, context }).blocks({ text, abortSignal });
    return blocks.flatMap(({ items }) => items);
  }

  async endSession({ sessionId, context, wait = false }: EndedSession): Promise<IngestResult> {
    const scope = this.#learnedInto({ sessionId, context });
    if (!scope || !this.#settings.learn || !this.#parts.triggers.onSessionEnd) return { status: 'known', jobIds: [] };
    this.#triggers.stop(this.#keyOf(scope, sessionId));
    return this.#manager.ingest({ scope, sessionId, wait });
  }

  /** @internal */
  openTurn(turn: MemoryTurnScope): AttachedTurn {
    return new AttachedTurn(this.#turns, this.#scopesOf(turn), turn.sessionId);
  }

  /** @internal */
  serve({ store, redact }: RememberingAgent): void {
    if (redact) this.#redactions.add(redact);
    if (!store || this.#stores.has(store)) return;
    this.#stores.add(store);
    this.#parts.stores.add(store);
    if (!this.#settings.learn) return;
    const { appName } = this.#parts;
    this.#parts.sessions.add({
      store,
      scopeOf: ({ sessionId, ownerId }, context) => {
        const at = { appName, ...(context && { context }) };
        if (this.#settings.scopes[0] === 'session') return sessionScope({ ...at, sessionId });
        if (this.#settings.scopes[0] === 'app') return appScope(at);
        return ownerId === undefined ? undefined : userScope({ ...at, userId: ownerId });
      },
    });
  }

  /** @internal */
  async afterTurn({ sessionId, context, snapshotId, messages, isOwn, store }: EndedTurn): Promise<void> {
    try {
      const scope = this.#settings.learn ? this.#learnedInto({ sessionId, context }) : undefined;
      if (!scope || (scope.kind === 'user' && !isOwn)) return;
      const session: SessionToLearn = { scope, sessionId, snapshotId, messages };
      const later = store ? () => readSession(store, scope, sessionId) : async () => session;
      await this.#triggers.turnEnded(this.#keyOf(scope, sessionId), session, later);
    } catch (error) {
      logger.warn(`Session ${quote(sessionId)} is not learned from. ${describeThrown(error)}`);
    }
  }

  /** What the stores of the agents keep of a text: a turn that runs has the originals. */
  async #redact(text: string): Promise<string> {
    let kept = text;
    for (const redact of this.#redactions) kept = await redact(kept);
    return kept;
  }

  /** The first of the scopes, if the caller has it: what is about a user is not kept elsewhere because no user is signed in. */
  #learnedInto(turn: MemoryTurnScope): MemoryScope | undefined {
    const [scope] = this.#scopesOf(turn);
    return scope?.kind === this.#settings.scopes[0] ? scope : undefined;
  }

  #keyOf(scope: MemoryScope, sessionId: string): string {
    const { id, options } = targetOf(scope);
    return JSON.stringify([tenantScopeKey(this.#manager.store, id, options), sessionId]);
  }

  /** Those of the caller. Without a user there is none of a user, without a session none of a session. */
  #scopesOf({ sessionId, context }: MemoryTurnScope): MemoryScope[] {
    return this.#settings.scopes.flatMap((kind) => {
      if (kind === 'session' && sessionId === undefined) return [];
      try {
        return [this.#manager.scopeFor(kind, { context, ...(sessionId !== undefined && { sessionId }) })];
      } catch (error) {
        if (!(error instanceof GenkitError && error.status === 'UNAUTHENTICATED'))
          logger.warn(`The turn has no memories: their scope is unknown. ${describeThrown(error)}`);
        return [];
      }
    });
  }
}
