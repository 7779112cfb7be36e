import type { ActionContext, MessageData } from 'genkit';
import type { AgentFinishReason, SessionState } from 'genkit/beta';
import { quote } from '../../errors.ts';
import type { RuntimeError, TurnOutcome } from '../../session/turn.ts';
import { endTurnState, stateChangesOf } from '../../session/state/session-state.ts';
import { adoptMessages, messagesSoFar, viewOf, type Session } from '../../session/session.ts';
import { isWaiting, waitsAfter, type Waits } from '../../session/tool-requests.ts';
import { takeUsage, type UsageField } from '../../session/usage.ts';
import { changesOf } from '../../store/contract.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { noteFailure } from './last-failure.ts';
import { assertCustomState, copyCustomState, fitsStateSchema } from '../open/custom-state.ts';
import type { OpenedSession } from '../open/open-session.ts';
import { loggedError, statusOf, storedError, toRuntimeError } from '../runtime-error.ts';
import { ResumeClaim, type ResumeClaimRequest } from './resume-claim.ts';
import { SnapshotWriter, type TurnContent } from './snapshot-writer.ts';
import { ABORTED, failed } from '../turn-ending.ts';

interface Completed {
  readonly finishReason?: AgentFinishReason | undefined;
  readonly error?: RuntimeError | undefined;
  /** The turn answered a waiting tool request. A request that waits now is then a new one, even if it is equal. */
  readonly hasAnswered?: boolean;
}

/** The last state that the conversation can continue from. */
export interface LastGood<State> extends Waits {
  /** The snapshot that holds it. Missing before the first one, and for agents without a store. */
  readonly snapshotId?: string;
  readonly state: SessionState<State>;
}

/**
 * Saves turns as snapshots, each the child of the one before, and remembers the last good state. For an agent without a store it only
 * remembers the state, which goes to the caller with the output.
 */
export class TurnCommits<State> {
  readonly writer: SnapshotWriter<State>;
  readonly #agent: AgentDefinition<State>;
  readonly #session: Session<State>;
  readonly #context: ActionContext | undefined;
  #parentId: string | undefined;
  #savedVersion: number;
  #lastGood: LastGood<State>;
  #saving: Promise<TurnOutcome> | undefined;
  /** Set while the session holds messages (`from`) that the store saved in another form (`to`), for example with placeholders. */
  #changed: { readonly from: readonly MessageData[]; readonly to: readonly MessageData[] } | undefined;

  constructor(agent: AgentDefinition<State>, opened: OpenedSession<State>) {
    const { session, caller, parentId, waitingSince } = opened;
    this.writer = new SnapshotWriter<State>(agent, opened);
    this.#agent = agent;
    this.#session = session;
    this.#context = caller.context;
    this.#parentId = parentId;
    this.#savedVersion = session.getVersion();
    this.#lastGood = { snapshotId: parentId, state: stateOf(agent, session), ...(waitingSince && { waitingSince }) };
  }

  /** The parent of the next snapshot. */
  get parentId(): string | undefined {
    return this.#parentId;
  }

  get lastGood(): LastGood<State> {
    return this.#lastGood;
  }

  /**
   * Takes the claim on the tools that the session waits to run, in the snapshot in which their request was first saved. `undefined` without a
   * store.
   *
   * @throws `FAILED_PRECONDITION` when another turn has run the tools or is running them.
   */
  async claimTools(turnId: string): Promise<ResumeClaim<State> | undefined> {
    const request = this.#claimRequest(turnId);
    return request && ResumeClaim.take(request);
  }

  /** @throws `FAILED_PRECONDITION` as {@link claimTools}, which it does not do. */
  async assertUnclaimed(turnId: string): Promise<void> {
    const request = this.#claimRequest(turnId);
    if (request) await ResumeClaim.assertFree(request);
  }

  /** @throws `FAILED_PRECONDITION` when a completed turn has the results of the waiting tools. */
  async assertNoResult(turnId: string): Promise<void> {
    const request = this.#claimRequest(turnId);
    if (request) await ResumeClaim.assertNoResult(request);
  }

  #claimRequest(turnId: string): ResumeClaimRequest<State> | undefined {
    const { waitingSince, state } = this.#lastGood;
    const interruptedId = (isWaiting(state.messages?.at(-1)) && waitingSince?.at(-1)) || this.#parentId;
    const { store } = this.#agent;
    if (!store || interruptedId === undefined) return undefined;
    return { agent: this.#agent, store, interruptedId, turnId, context: this.#context };
  }

  /** Replaces the session's messages by the stored ones. Called when the next turn begins: until then the saved turn may show its own. */
  adoptStored(): void {
    if (!this.#changed) return;
    const { from, to } = this.#changed;
    this.#changed = undefined;
    const isSaved = this.#savedVersion === this.#session.getVersion();
    const { messages } = viewOf(this.#session);
    adoptMessages(
      this.#session,
      messages.map((message, i) => (message === from[i] ? to[i]! : message)),
    );
    if (isSaved) this.#savedVersion = this.#session.getVersion();
  }

  /** The session or its shared scopes changed after the last commit. */
  get hasUnsaved(): boolean {
    return this.#savedVersion !== this.#session.getVersion() || stateChangesOf(this.#session).length > 0;
  }

  /** The outcome of the turn that is being saved. Never rejects. */
  get saving(): Promise<TurnOutcome> | undefined {
    return this.#saving;
  }

  /**
   * Saves the session as a completed snapshot. When the store fails, the outcome is `failed` and its reply is still valid; when the custom state
   * does not fit the `stateSchema` or is not JSON, the turn itself failed. Never rejects.
   */
  complete(snapshotId: string, { finishReason, error: refusal, hasAnswered }: Completed = {}): Promise<TurnOutcome> {
    return this.#whileSaving(async (used) => {
      try {
        this.adoptStored();
        const version = this.#session.getVersion();
        const state = stateOf(this.#agent, this.#session);
        const scopes = stateChangesOf(this.#session);
        if (this.#agent.stateSchema) {
          for (const custom of [state.custom, await this.#redacted(state)])
            await assertCustomState(this.#agent, custom, { what: 'this turn' });
        }
        const reason = finishReason && { finishReason };
        const waits = this.#waitsOf(snapshotId, state, hasAnswered);
        let saved: { snapshotId?: string } | undefined = {};
        if (this.#agent.store) {
          try {
            const content = { status: 'completed', state, ...waits, ...used, ...reason } as const;
            const before = this.#lastGood.state.messages;
            saved = await this.writer.save(snapshotId, this.#parentId, content, { before, scopes });
          } catch (error) {
            // The store refused a value that the turn produced, so the message is for the operator.
            const audience = statusOf(error) === 'INVALID_ARGUMENT' ? 'operator' : undefined;
            return { ...this.refuse(snapshotId, toRuntimeError(error, audience)), unsaved: true };
          }
          if (!saved) return { status: 'aborted' };
        }
        endTurnState(this.#session, scopes);
        this.#savedVersion = version;
        this.#parentId = saved.snapshotId ?? snapshotId;
        const stored = changesOf(this.#agent.sharedStore).storedState?.(state) ?? state;
        if (stored !== state) this.#changed = { from: state.messages ?? [], to: stored.messages ?? [] };
        this.#lastGood = { ...saved, state: stored, ...waits };
        return { status: 'completed', ...saved, ...reason, ...(refusal && { error: refusal }) };
      } catch (error) {
        return this.#fail(snapshotId, used, toRuntimeError(error));
      }
    });
  }

  /**
   * Saves the state of a failed turn for inspection. No call resumes it: the session continues from the snapshot before. If another turn
   * was saved first, nothing is saved: the failed snapshot would become the leaf and hide that turn. Never rejects.
   */
  fail(snapshotId: string, error: RuntimeError): Promise<TurnOutcome> {
    return this.#whileSaving((used) => this.#fail(snapshotId, used, error));
  }

  /** The outcome of an input that was refused before it changed anything. Saves nothing. */
  refuse(snapshotId: string, error: RuntimeError): TurnOutcome & { status: 'failed' } {
    return { status: 'failed', error: this.logFailure(snapshotId, error) };
  }

  #whileSaving(save: (used: UsageField) => Promise<TurnOutcome>): Promise<TurnOutcome> {
    const used = takeUsage(this.#session);
    const { usage } = used;
    const saving = usage ? save(used).then((outcome) => ({ ...outcome, usage })) : save(used);
    this.#saving = saving;
    void saving.then(() => (this.#saving = undefined));
    return saving;
  }

  /** The error of a turn as it is sent. It is logged here, under its `errorId`; an agent without a store sends all of it. */
  logFailure(snapshotId: string, error: RuntimeError): RuntimeError {
    if (!this.#agent.store) return error;
    const { isInBackground } = this.writer;
    const place = isInBackground ? ' in the background' : '';
    const logged = loggedError(error, `A turn of agent '${this.#agent.name}'${place} (snapshot ${quote(snapshotId)})`);
    if (isInBackground) noteFailure(this.#agent, snapshotId, logged);
    return logged;
  }

  async #fail(snapshotId: string, used: UsageField, thrown: RuntimeError): Promise<TurnOutcome> {
    const error = this.logFailure(snapshotId, thrown);
    if (!this.#agent.store) return { status: 'failed', error };
    try {
      const progress = await this.contentOf(snapshotId, this.stateSoFar());
      const content = { ...failed(storedError(error)), ...progress, ...used };
      const saved = await this.writer.save(snapshotId, this.#parentId, content);
      return saved ? { status: 'failed', error, ...saved } : { status: 'aborted' };
    } catch {
      // The turn's own error matters more than the failure to save it.
      return { status: 'failed', error };
    }
  }

  /** Saves the progress of an aborted foreground turn, so that the conversation can continue from there. */
  async keepAborted(snapshotId: string): Promise<void> {
    const content = await this.contentOf(snapshotId, this.stateSoFar());
    // The turn did nothing: the tool request still waits for the caller.
    if (isWaiting(content.state.messages?.at(-1))) return;
    const ending = { ...ABORTED, ...takeUsage(this.#session) };
    const saved = !this.#agent.store || (await this.writer.end(snapshotId, this.#parentId, ending, content));
    if (saved) this.#lastGood = { ...(this.#agent.store && { snapshotId }), ...content };
  }

  /** The content of a snapshot of an incomplete turn. Custom state that does not fit the `stateSchema` is replaced by the last valid one. */
  async contentOf(snapshotId: string, state: SessionState<State>): Promise<TurnContent<State>> {
    const waits = this.#waitsOf(snapshotId, state);
    const fits = (unchecked: unknown) => fitsStateSchema(this.#agent, unchecked);
    if ((await fits(state.custom)) && (await fits(await this.#redacted(state)))) return { state, ...waits };
    const { custom: _unfit, ...rest } = state;
    const { custom } = this.#lastGood.state;
    return { state: { ...rest, ...(custom !== undefined && { custom }) }, ...waits };
  }

  /**
   * The custom state as the store keeps it, which the next call must be able to read; `undefined` if the store keeps it unchanged. Never
   * rejects: if a rule fails, the save reports it.
   */
  async #redacted(state: SessionState<State>): Promise<unknown> {
    const { sessionId, custom } = state;
    const { stateSchema, sharedStore } = this.#agent;
    if (!stateSchema || custom === undefined || sessionId === undefined) return undefined;
    const turn = { sessionId, parentId: this.#parentId, context: this.#context };
    return changesOf(sharedStore)
      .redactCustom?.(state, turn)
      .catch(() => undefined);
  }

  #waitsOf(snapshotId: string, { messages }: SessionState<State>, hasAnswered = false): Waits {
    const { state, ...before } = this.#lastGood;
    const earlier = hasAnswered ? state.messages?.slice(0, -1) : state.messages;
    return waitsAfter({ ...before, messages: earlier }, snapshotId, messages);
  }

  /**
   * The current state with the progress of the running turn, as far as it can be reported and stored. Never throws, because a failed run must
   * still get its end.
   */
  stateSoFar(): SessionState<State> {
    this.adoptStored();
    const { sessionId, messages: saved, artifacts } = viewOf(this.#session);
    const messages = orElse(() => [...messagesSoFar(this.#session)], [...saved]);
    return orElse(() => ({ ...stateOf(this.#agent, this.#session), messages }), {
      sessionId,
      messages,
      artifacts: [...artifacts],
    });
  }
}

/** Returns the result of `attempt`, or `fallback` when it throws. */
function orElse<T>(attempt: () => T, fallback: T): T {
  try {
    return attempt();
  } catch {
    return fallback;
  }
}

/** The state to save. Messages and artifacts are immutable and shared; the custom state is copied as JSON. */
function stateOf<State>(agent: AgentDefinition<State>, session: Session<State>): SessionState<State> {
  const { sessionId, messages, artifacts, custom } = viewOf(session);
  return {
    sessionId,
    messages: [...messages],
    ...(custom !== undefined && { custom: copyCustomState(agent, custom, 'this turn') }),
    artifacts: [...artifacts],
  };
}
