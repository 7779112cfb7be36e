import type { ActionContext } from 'genkit';
import type {
  AgentFinishReason,
  SessionSnapshot,
  SessionSnapshotInput,
  SessionState,
  SessionStore,
  SnapshotMutator,
} from 'genkit/beta';
import { logger } from 'genkit/logging';
import { failedPrecondition, quote, SessionConflictError } from '../errors.ts';
import type { RuntimeError, TurnOutcome } from '../session/session-runner.ts';
import { messagesSoFar, viewOf, type Session } from '../session/session.ts';
import { isTerminal } from '../snapshot/status.ts';
import { mustHaveStore, type AgentDefinition } from './agent-definition.ts';
import type { SaveSnapshotOptions } from '../store/contract.ts';
import { findLastCompleted } from './open-session.ts';
import { assertCustomState, copyCustomState } from './custom-state.ts';
import { isTransient, withRetries } from './retry.ts';
import { statusOf, toRuntimeError } from './runtime-error.ts';

/** What {@link TurnCommits} needs to know. */
export interface TurnCommitsOptions<State> {
  agent: AgentDefinition<State>;
  session: Session<State>;
  /** The snapshot that the session was opened from. */
  parentId: string | undefined;
  /** What the first save of the call expects to be the session's leaf (`null`: nothing); absent: it does not look. */
  expectedLeafId?: string | null;
  context: ActionContext | undefined;
}

/** What a snapshot says besides where it belongs. */
type Content<State> = Pick<SessionSnapshotInput<State>, 'status' | 'finishReason' | 'error' | 'state' | 'heartbeatAt'>;

interface Saved {
  readonly snapshotId: string;
}

/** How a turn ends that does not end by itself. */
export type TurnEnding =
  | { readonly status: 'aborted'; readonly finishReason: 'aborted' }
  | { readonly status: 'failed'; readonly finishReason: 'failed'; readonly error: RuntimeError };

/** The last state worth continuing from. */
export interface LastGood<State> {
  /** The snapshot that holds it; absent before the first, and for agents without a store. */
  readonly snapshotId?: string;
  readonly state: SessionState<State>;
}

/**
 * Makes turns into snapshots, each the child of the one before, and remembers the last good state. Of an agent without a store it only
 * remembers: the state goes to the caller with the output.
 */
export class TurnCommits<State> {
  readonly #agent: AgentDefinition<State>;
  readonly #session: Session<State>;
  readonly #context: ActionContext | undefined;
  /** Turns that go on in the background: their snapshots are there, unless somebody removed them. */
  readonly #pending = new Set<string>();
  #parentId: string | undefined;
  #expectedLeafId: string | null | undefined;
  #savedVersion: number;
  #lastGood: LastGood<State>;

  constructor({ agent, session, parentId, expectedLeafId, context }: TurnCommitsOptions<State>) {
    this.#expectedLeafId = expectedLeafId;
    this.#agent = agent;
    this.#session = session;
    this.#context = context;
    this.#parentId = parentId;
    this.#savedVersion = session.getVersion();
    this.#lastGood = { ...(parentId !== undefined && { snapshotId: parentId }), state: stateOf(agent, session) };
  }

  /** The snapshot that the next one continues from. */
  get parentId(): string | undefined {
    return this.#parentId;
  }

  get lastGood(): LastGood<State> {
    return this.#lastGood;
  }

  /** The session changed after the last commit. */
  get isBehind(): boolean {
    return this.#savedVersion !== this.#session.getVersion();
  }

  /**
   * Saves the session as a completed snapshot. A store that cannot save makes it a failed outcome whose reply is still good.
   *
   * @throws `INTERNAL` when the custom state does not fit the `stateSchema`, or holds what JSON cannot: the turn is at fault.
   */
  async complete(snapshotId: string, finishReason?: AgentFinishReason): Promise<TurnOutcome> {
    const version = this.#session.getVersion();
    const state = stateOf(this.#agent, this.#session);
    await assertCustomState(this.#agent, state.custom, { what: 'this turn' });
    const reason = finishReason && { finishReason };
    const { store } = this.#agent;
    let saved: { snapshotId?: string } | undefined = {};
    if (store) {
      try {
        saved = await this.#save(store, snapshotId, { status: 'completed', ...reason, state });
      } catch (error) {
        // What the store does not take, the turn made.
        const audience = statusOf(error) === 'INVALID_ARGUMENT' ? 'operator' : undefined;
        return { status: 'failed', error: toRuntimeError(error, audience), unsaved: true };
      }
      if (!saved) return { status: 'aborted' };
    }
    this.#savedVersion = version;
    this.#parentId = saved.snapshotId ?? snapshotId;
    this.#lastGood = { ...saved, state };
    return { status: 'completed', ...saved, ...reason };
  }

  /** Saves what a failed turn left behind, for inspection: nothing resumes it. */
  async fail(snapshotId: string, error: RuntimeError): Promise<TurnOutcome> {
    const { store } = this.#agent;
    if (!store) return { status: 'failed', error };
    try {
      const content = { status: 'failed', finishReason: 'failed', error, state: this.stateSoFar() } as const;
      // It stands in nobody's way: the session continues from before it.
      this.#expectedLeafId = undefined;
      const saved = await this.#save(store, snapshotId, content);
      return saved ? { status: 'failed', error, ...saved } : { status: 'aborted' };
    } catch {
      // What the turn failed with matters more than that it could not be kept.
      return { status: 'failed', error };
    }
  }

  /**
   * Stores that the turn goes on in the background, before it does: its state so far, the prompt included.
   *
   * @param parentId The turn before it, which may not be done yet.
   */
  async pend(snapshotId: string, parentId: string | undefined, state: SessionState<State>): Promise<void> {
    const store = mustHaveStore(this.#agent, 'Detaching');
    this.#pending.add(snapshotId);
    const now = new Date().toISOString();
    const content = { status: 'pending', heartbeatAt: now, state } as const;
    const input = this.#input(snapshotId, parentId, content);
    // What is there already is what the turn has ended with in the meantime, or an earlier attempt.
    await this.#write(store, snapshotId, (current) => (current ? null : input));
  }

  /** Tells that a turn in the background is alive. Answers whether it still is to go on: nobody aborted it or removed its session. */
  async beat(snapshotId: string): Promise<boolean> {
    const store = mustHaveStore(this.#agent, 'A heartbeat');
    let isWanted = false;
    await store.saveSnapshot(
      snapshotId,
      (current) => {
        isWanted = current !== undefined && current.status !== 'aborted';
        return current?.status === 'pending' ? { ...current, heartbeatAt: new Date().toISOString() } : null;
      },
      { context: this.#context },
    );
    return isWanted;
  }

  /**
   * Gives a turn that will not end by itself its end. One that is aborted already gets the state with it, one that is settled stays.
   *
   * @returns Whether the store has it now.
   */
  async end(snapshotId: string, ending: TurnEnding, state: SessionState<State>): Promise<boolean> {
    const store = mustHaveStore(this.#agent, 'Ending a turn');
    const input = this.#input(snapshotId, this.#parentId, { ...ending, state });
    const { status } = ending;
    let found: SessionSnapshot<State> | undefined;
    try {
      const saved = await this.#write(store, snapshotId, (current) => {
        found = current;
        if (!current) return this.#pending.has(snapshotId) ? null : input;
        const isOpen = !isTerminal(current.status) || (current.status === 'aborted' && status === 'aborted');
        return isOpen ? { ...current, ...ending, state, updatedAt: input.updatedAt } : null;
      });
      return saved !== null || found?.status === status;
    } catch (error) {
      logger.error(`Snapshot ${quote(snapshotId)} could not be settled as ${status}. ${String(error)}`);
      return false;
    }
  }

  /** Keeps what a foreground turn had come to when it was aborted: the conversation can go on from there. */
  async keepAborted(snapshotId: string): Promise<void> {
    const state = this.stateSoFar();
    const ending = { status: 'aborted', finishReason: 'aborted' } as const;
    const saved = !this.#agent.store || (await this.end(snapshotId, ending, state));
    if (saved) this.#lastGood = { ...(this.#agent.store && { snapshotId }), state };
  }

  /** The state as it is, with what the running turn has come to; custom state that cannot be stored is left out. */
  stateSoFar(): SessionState<State> {
    const messages = [...messagesSoFar(this.#session)];
    try {
      return { ...stateOf(this.#agent, this.#session), messages };
    } catch {
      const { sessionId, artifacts } = viewOf(this.#session);
      return { sessionId, messages, artifacts: [...artifacts] };
    }
  }

  /** Answers the id that the store saved under; nothing when the snapshot was aborted, or removed, meanwhile. */
  async #save(store: SessionStore<State>, snapshotId: string, content: Content<State>): Promise<Saved | undefined> {
    const input = this.#input(snapshotId, this.#parentId, content);
    let found: SessionSnapshot['status'];
    const savedId = await this.#write(store, snapshotId, (current) => {
      found = current ? current.status : this.#pending.has(snapshotId) ? 'aborted' : undefined;
      return isTerminal(found) ? null : input;
    });
    // The id is this turn's own: what is there with the same status is an earlier attempt whose answer got lost.
    if (savedId !== null || found === input.status) return { snapshotId: savedId ?? snapshotId };
    if (found === 'aborted') return undefined;
    throw failedPrecondition(`Snapshot ${quote(snapshotId)} is ${found} already; this turn was not saved.`);
  }

  #input(snapshotId: string, parentId: string | undefined, content: Content<State>): SessionSnapshotInput<State> {
    const now = new Date().toISOString();
    // A turn that ends in the background is the parent of the next, never its own.
    const parent = parentId === undefined || parentId === snapshotId ? undefined : { parentId };
    return { snapshotId, sessionId: this.#session.sessionId, ...parent, createdAt: now, updatedAt: now, ...content };
  }

  async #write(
    store: SessionStore<State>,
    snapshotId: string,
    mutator: SnapshotMutator<State>,
  ): Promise<string | null> {
    for (;;) {
      try {
        const expected = this.#expectedLeafId !== undefined && { expectedLeafId: this.#expectedLeafId };
        const options: SaveSnapshotOptions = { context: this.#context, ...expected };
        const saved = await withRetries(() => store.saveSnapshot(snapshotId, mutator, options), isTransient);
        // From here on the session's leaf is this call's own.
        this.#expectedLeafId = undefined;
        return saved;
      } catch (error) {
        if (!SessionConflictError.isInstance(error) || !(await this.#isStillLast(store))) throw error;
      }
    }
  }

  /** Whether what came first has come to nothing: the session continues from where it did. */
  async #isStillLast(store: SessionStore<State>): Promise<boolean> {
    const { sessionId } = this.#session;
    const { leaf, snapshot } = await findLastCompleted(store, sessionId, this.#context);
    const isRunning = leaf?.status === 'pending';
    const isNew = leaf !== undefined && leaf.snapshotId !== this.#expectedLeafId;
    if (isRunning || !isNew || snapshot?.snapshotId !== this.#parentId) return false;
    this.#expectedLeafId = leaf.snapshotId;
    return true;
  }
}

/** The state to keep. Messages and artifacts never change and are shared, the custom state is copied as JSON. */
function stateOf<State>(agent: AgentDefinition<State>, session: Session<State>): SessionState<State> {
  const { sessionId, messages, artifacts, custom } = viewOf(session);
  return {
    sessionId,
    messages: [...messages],
    ...(custom !== undefined && { custom: copyCustomState(agent, custom, 'this turn') }),
    artifacts: [...artifacts],
  };
}
