import type { ActionContext } from 'genkit';
import type { AgentFinishReason, SessionSnapshot, SessionSnapshotInput, SessionState, SessionStore } from 'genkit/beta';
import { failedPrecondition, quote } from '../errors.ts';
import type { RuntimeError, TurnOutcome } from '../session/session-runner.ts';
import { viewOf, type Session } from '../session/session.ts';
import { isTerminal } from '../snapshot/status.ts';
import type { AgentDefinition } from './agent-definition.ts';
import { assertCustomState, copyCustomState } from './custom-state.ts';
import { isTransient, withRetries } from './retry.ts';
import { statusOf, toRuntimeError } from './runtime-error.ts';

/** What {@link TurnCommits} needs to know. */
export interface TurnCommitsOptions<State> {
  agent: AgentDefinition<State>;
  session: Session<State>;
  /** The snapshot that the session was opened from. */
  parentId: string | undefined;
  context: ActionContext | undefined;
}

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
  #parentId: string | undefined;
  #savedVersion: number;
  #lastGood: LastGood<State>;

  constructor({ agent, session, parentId, context }: TurnCommitsOptions<State>) {
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
      const state = this.#stateToInspect();
      const saved = await this.#save(store, snapshotId, { status: 'failed', finishReason: 'failed', error, state });
      return saved ? { status: 'failed', error, ...saved } : { status: 'aborted' };
    } catch {
      // What the turn failed with matters more than that it could not be kept.
      return { status: 'failed', error };
    }
  }

  /** The state as it is; custom state that cannot be stored is left out, it is what the turn failed with. */
  #stateToInspect(): SessionState<State> {
    try {
      return stateOf(this.#agent, this.#session);
    } catch {
      const { sessionId, messages, artifacts } = viewOf(this.#session);
      return { sessionId, messages: [...messages], artifacts: [...artifacts] };
    }
  }

  /** Answers the id that the store saved under; nothing when the snapshot was aborted meanwhile. */
  async #save(
    store: SessionStore<State>,
    snapshotId: string,
    content: Pick<SessionSnapshotInput<State>, 'status' | 'finishReason' | 'error' | 'state'>,
  ): Promise<{ snapshotId: string } | undefined> {
    const now = new Date().toISOString();
    const input: SessionSnapshotInput<State> = {
      snapshotId,
      sessionId: this.#session.sessionId,
      ...(this.#parentId !== undefined && { parentId: this.#parentId }),
      createdAt: now,
      updatedAt: now,
      ...content,
    };
    let found: SessionSnapshot['status'];
    const mutator = (current: SessionSnapshot<State> | undefined): SessionSnapshotInput<State> | null => {
      found = current?.status;
      return isTerminal(found) ? null : input;
    };
    const options = { context: this.#context };
    const savedId = await withRetries(() => store.saveSnapshot(snapshotId, mutator, options), isTransient);
    // The id is this turn's own: what is there with the same status is an earlier attempt whose answer got lost.
    if (savedId !== null || found === input.status) return { snapshotId: savedId ?? snapshotId };
    if (found === 'aborted') return undefined;
    throw failedPrecondition(`Snapshot ${quote(snapshotId)} is ${found} already; this turn was not saved.`);
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
