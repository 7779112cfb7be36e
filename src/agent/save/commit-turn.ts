import type { ActionContext } from 'genkit';
import type { AgentFinishReason, SessionState } from 'genkit/beta';
import { quote } from '../../errors.ts';
import type { RuntimeError, TurnOutcome } from '../../session/session-runner.ts';
import type { SessionOwner } from '../../session/log/session-log.ts';
import { endTurnState, stateChangesOf } from '../../session/state/session-state.ts';
import { messagesSoFar, viewOf, type Session } from '../../session/session.ts';
import { isWaiting, waitsAfter, type Waits } from '../../session/tool-requests.ts';
import { takeUsage, type UsageField } from '../../session/usage.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { assertCustomState, copyCustomState, fitsStateSchema } from '../open/custom-state.ts';
import { loggedError, statusOf, toRuntimeError } from '../runtime-error.ts';
import { SnapshotWriter, type TurnContent } from './snapshot-writer.ts';
import { ABORTED } from '../turn-ending.ts';

/** What {@link TurnCommits} needs to know. */
export interface TurnCommitsOptions<State> extends Waits {
  agent: AgentDefinition<State>;
  session: Session<State>;
  /** The snapshot that the session was opened from. */
  parentId?: string | undefined;
  /** What the call found as the session's leaf (`null`: nothing), and no other turn may follow; absent: it does not look. */
  expectedLeafId?: string | null;
  context: ActionContext | undefined;
  /** Whose the session is; absent: nobody's. */
  owner?: SessionOwner | undefined;
}

/** What is told of a turn that is saved. */
interface TurnEnding {
  readonly finishReason?: AgentFinishReason | undefined;
  readonly error?: RuntimeError | undefined;
  /** What waited for the caller before the turn was answered: a request that waits now is another one, though it may look the same. */
  readonly hasAnswered?: boolean;
}

/** The last state worth continuing from. */
export interface LastGood<State> extends Waits {
  /** The snapshot that holds it; absent before the first, and for agents without a store. */
  readonly snapshotId?: string;
  readonly state: SessionState<State>;
}

/**
 * Makes turns into snapshots, each the child of the one before, and remembers the last good state. Of an agent without a store it only
 * remembers: the state goes to the caller with the output.
 */
export class TurnCommits<State> {
  /** Writes them. */
  readonly writer: SnapshotWriter<State>;
  readonly #agent: AgentDefinition<State>;
  readonly #session: Session<State>;
  #parentId: string | undefined;
  #savedVersion: number;
  #lastGood: LastGood<State>;
  #saving: Promise<TurnOutcome> | undefined;

  constructor(options: TurnCommitsOptions<State>) {
    const { agent, session, parentId, expectedLeafId, context, owner, waitingSince } = options;
    this.writer = new SnapshotWriter<State>({ agent, sessionId: session.sessionId, expectedLeafId, context, owner });
    this.#agent = agent;
    this.#session = session;
    this.#parentId = parentId;
    this.#savedVersion = session.getVersion();
    this.#lastGood = { snapshotId: parentId, state: stateOf(agent, session), ...(waitingSince && { waitingSince }) };
  }

  /** The snapshot that the next one continues from. */
  get parentId(): string | undefined {
    return this.#parentId;
  }

  get lastGood(): LastGood<State> {
    return this.#lastGood;
  }

  /** The snapshot in which the tool request that the session ends with was first saved: whoever wants to run the tool claims it there. */
  get interruptedId(): string | undefined {
    const { waitingSince, state } = this.#lastGood;
    return (isWaiting(state.messages?.at(-1)) && waitingSince?.at(-1)) || this.#parentId;
  }

  /** The session, or what it shares with others, changed after the last commit. */
  get isBehind(): boolean {
    return this.#savedVersion !== this.#session.getVersion() || stateChangesOf(this.#session).length > 0;
  }

  /** How the turn ends that is being saved; never rejects. */
  get saving(): Promise<TurnOutcome> | undefined {
    return this.#saving;
  }

  /**
   * Saves the session as a completed snapshot. A store that cannot save makes it a failed outcome whose reply is still good; custom state that
   * does not fit the `stateSchema`, or holds what JSON cannot, one of which the turn is at fault. Never rejects.
   */
  complete(snapshotId: string, ending?: TurnEnding): Promise<TurnOutcome> {
    return this.#whileSaving((used) =>
      this.#complete(snapshotId, used, ending).catch((error: unknown) =>
        this.#fail(snapshotId, used, toRuntimeError(error)),
      ),
    );
  }

  /**
   * Saves what a failed turn left behind, for inspection: nothing resumes it, and the session continues from before it. Where another turn
   * came first it is not kept: the session would not continue from that one any more. Never rejects.
   */
  fail(snapshotId: string, error: RuntimeError): Promise<TurnOutcome> {
    return this.#whileSaving((used) => this.#fail(snapshotId, used, error));
  }

  #whileSaving(save: (used: UsageField) => Promise<TurnOutcome>): Promise<TurnOutcome> {
    const used = takeUsage(this.#session);
    const saving = used.usage ? save(used).then((outcome) => ({ ...outcome, ...used })) : save(used);
    this.#saving = saving;
    const forget = () => {
      this.#saving = undefined;
    };
    void saving.then(forget);
    return saving;
  }

  async #complete(
    snapshotId: string,
    used: UsageField,
    { finishReason, error: unkept, hasAnswered }: TurnEnding = {},
  ): Promise<TurnOutcome> {
    const version = this.#session.getVersion();
    const state = stateOf(this.#agent, this.#session);
    const scopes = stateChangesOf(this.#session);
    if (this.#agent.stateSchema) await assertCustomState(this.#agent, state.custom, { what: 'this turn' });
    const reason = finishReason && { finishReason };
    const waits = this.#waitsOf(snapshotId, state, hasAnswered);
    let saved: { snapshotId?: string } | undefined = {};
    if (this.#agent.store) {
      try {
        const content = { status: 'completed', state, ...waits, ...used, ...reason } as const;
        const before = this.#lastGood.state.messages;
        saved = await this.writer.save(snapshotId, this.#parentId, content, { before, scopes });
      } catch (error) {
        // What the store does not take, the turn made.
        const audience = statusOf(error) === 'INVALID_ARGUMENT' ? 'operator' : undefined;
        return { status: 'failed', error: this.noted(snapshotId, toRuntimeError(error, audience)), unsaved: true };
      }
      if (!saved) return { status: 'aborted' };
    }
    endTurnState(this.#session, scopes);
    this.#savedVersion = version;
    this.#parentId = saved.snapshotId ?? snapshotId;
    this.#lastGood = { ...saved, state, ...waits };
    return { status: 'completed', ...saved, ...reason, ...(unkept && { error: unkept }) };
  }

  /** The error of a turn, as it is told and stored. One that nobody waits for is in the log from here on. */
  noted(snapshotId: string, error: RuntimeError): RuntimeError {
    if (!this.writer.isInBackground) return error;
    return loggedError(
      error,
      `A turn of agent '${this.#agent.name}' in the background (snapshot ${quote(snapshotId)})`,
    );
  }

  async #fail(snapshotId: string, used: UsageField, thrown: RuntimeError): Promise<TurnOutcome> {
    const error = this.noted(snapshotId, thrown);
    if (!this.#agent.store) return { status: 'failed', error };
    try {
      const progress = await this.contentOf(snapshotId, this.stateSoFar());
      const content = { status: 'failed', finishReason: 'failed', error, ...progress, ...used } as const;
      const saved = await this.writer.save(snapshotId, this.#parentId, content);
      return saved ? { status: 'failed', error, ...saved } : { status: 'aborted' };
    } catch {
      // What the turn failed with matters more than that it could not be kept.
      return { status: 'failed', error };
    }
  }

  /** Keeps what a foreground turn had come to when it was aborted: the conversation can go on from there. */
  async keepAborted(snapshotId: string): Promise<void> {
    const content = await this.contentOf(snapshotId, this.stateSoFar());
    // Nothing was done: the caller is waited for as before.
    if (isWaiting(content.state.messages?.at(-1))) return;
    const ending = { ...ABORTED, ...takeUsage(this.#session) };
    const saved = !this.#agent.store || (await this.writer.end(snapshotId, this.#parentId, ending, content));
    if (saved) this.#lastGood = { ...(this.#agent.store && { snapshotId }), ...content };
  }

  /** What a snapshot holds of a turn that did not complete: custom state that does not fit the `stateSchema` stays as it was last good. */
  async contentOf(snapshotId: string, state: SessionState<State>): Promise<TurnContent<State>> {
    const waits = this.#waitsOf(snapshotId, state);
    if (await fitsStateSchema(this.#agent, state.custom)) return { state, ...waits };
    const { custom: _unfit, ...rest } = state;
    const { custom } = this.#lastGood.state;
    return { state: { ...rest, ...(custom !== undefined && { custom }) }, ...waits };
  }

  #waitsOf(snapshotId: string, { messages }: SessionState<State>, hasAnswered = false): Waits {
    const { state, ...before } = this.#lastGood;
    const said = hasAnswered ? state.messages?.slice(0, -1) : state.messages;
    return waitsAfter({ ...before, messages: said }, snapshotId, messages);
  }

  /**
   * The state as it is, with what the running turn has come to, as far as that can be told and stored. Never throws: a run that failed has to
   * get its end.
   */
  stateSoFar(): SessionState<State> {
    const { sessionId, messages: said, artifacts } = viewOf(this.#session);
    const messages = orElse(() => [...messagesSoFar(this.#session)], [...said]);
    return orElse(() => ({ ...stateOf(this.#agent, this.#session), messages }), {
      sessionId,
      messages,
      artifacts: [...artifacts],
    });
  }
}

/** What `attempt` answers; what is there instead when it throws. */
function orElse<T>(attempt: () => T, instead: T): T {
  try {
    return attempt();
  } catch {
    return instead;
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
