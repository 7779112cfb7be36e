import { applyPatch } from '../../json/apply.ts';
import { putByName } from '../../json/named-list.ts';
import { AgentError } from '../errors.ts';
import { withoutValue } from './parts.ts';
import type { TurnAftermath } from './response.ts';
import type { AgentTransport } from '../transport.ts';
import type {
  AgentInit,
  AgentInput,
  AgentOutput,
  AgentStreamChunk,
  Artifact,
  MessageData,
  SessionSnapshot,
  SessionState,
} from '../types.ts';

type Patch = NonNullable<AgentStreamChunk['customPatch']>;

/** What a turn that comes to nothing goes back to. */
interface Checkpoint<State> {
  snapshotId: string | undefined;
  messages: MessageData[];
  artifacts: Artifact[];
  custom: State | undefined;
}

/**
 * What a chat knows of its conversation. Arrays and states are replaced, never changed in place, so that what was handed out stays as it was.
 */
export class Conversation<State> {
  snapshotId: string | undefined;
  sessionId: string | undefined;
  messages: MessageData[] = [];
  artifacts: Artifact[] = [];
  custom: State | undefined;

  /** How the caller wanted the conversation to begin. */
  readonly #opening: AgentInit<State>;
  readonly #stateManagement: 'server' | 'client' | undefined;
  /** Some output has told where the conversation stands, and the opening is no longer the way to continue it. */
  #underWay = false;
  /** The whole state, as an agent without a store sent it: the next turn takes it along. Never made up from patches. */
  #clientState: SessionState<State> | undefined;
  /** Where the conversation stood before the turn that now runs in the background. */
  #beforeDetached: Checkpoint<State> | undefined;

  constructor(opening: AgentInit<State> = {}, stateManagement?: 'server' | 'client') {
    this.#opening = opening;
    this.#stateManagement = stateManagement;
    this.snapshotId = opening.snapshotId;
    this.sessionId = opening.sessionId;
    if (opening.state) {
      this.#show(opening.state);
    }
  }

  /** The conversation that a snapshot holds. */
  static of<State>(snapshot: SessionSnapshot<State>, stateManagement?: 'server' | 'client'): Conversation<State> {
    const conversation = new Conversation<State>({ snapshotId: snapshot.snapshotId }, stateManagement);
    conversation.#show(snapshot.state ?? {});
    conversation.sessionId = snapshot.sessionId ?? snapshot.state?.sessionId;
    return conversation;
  }

  /** Where the next turn continues from. */
  nextInit(): AgentInit<State> {
    if (!this.#underWay) {
      return this.#opening;
    }
    if (this.snapshotId !== undefined) {
      return { snapshotId: this.snapshotId };
    }
    if (this.#clientState) {
      return { state: this.#clientState };
    }
    // The first turn of an agent with a store failed: there is no snapshot to continue from, but there is a session.
    if (this.sessionId !== undefined && this.#stateManagement !== 'client') {
      return { sessionId: this.sessionId };
    }
    return this.#opening;
  }

  /** The conversation as it is, for {@link settle}. */
  checkpoint(): Checkpoint<State> {
    const { snapshotId, messages, artifacts, custom } = this;
    return { snapshotId, messages, artifacts, custom };
  }

  /** A turn begins. */
  begin(input: AgentInput): void {
    if (input.message) {
      this.messages = [...this.messages, input.message];
    }
  }

  /** A turn was sent to the background; what became of it is not known: {@link catchUp}. */
  get isBehind(): boolean {
    return this.#beforeDetached !== undefined;
  }

  /**
   * The agent changed its custom state.
   *
   * @throws PatchError when the change does not fit; the state is then as it was.
   */
  change(patch: Patch): void {
    const [first] = patch;
    // JSON drops a value that is undefined: this is how a state that was emptied arrives.
    const emptied = patch.length === 1 && first?.op === 'replace' && first.path === '' && first.value === undefined;
    this.custom = emptied ? undefined : applyPatch(this.custom, patch);
  }

  /** A turn ended. */
  settle(output: AgentOutput<State>, before: Checkpoint<State>): void {
    this.#underWay ||= output.snapshotId !== undefined || output.sessionId !== undefined || output.state !== undefined;
    this.snapshotId = output.snapshotId ?? this.snapshotId;
    this.sessionId = output.sessionId ?? this.sessionId;
    if (output.finishReason === 'detached') {
      this.#beforeDetached = before;
    }
    const isKept = output.finishReason === 'aborted' && this.snapshotId !== before.snapshotId;
    if (output.finishReason === 'failed' || (output.finishReason === 'aborted' && !isKept)) {
      // It came to nothing: neither its message nor its changes belong to the conversation.
      this.#goBack(before);
    } else {
      this.messages = output.message ? [...this.messages, withoutValue(output.message)] : this.messages;
      this.artifacts = [...this.artifacts];
      for (const artifact of output.artifacts ?? []) putByName(this.artifacts, artifact);
    }
    if (output.state) {
      this.#clientState = output.state;
      this.#show(output.state);
    }
  }

  /**
   * Learns what became of a turn that was sent to the background: the next one continues from it, or from where it did when it came to nothing.
   *
   * @throws AgentError `FAILED_PRECONDITION` while it is under way.
   */
  async catchUp(transport: AgentTransport, abortSignal: AbortSignal): Promise<void> {
    const before = this.#beforeDetached;
    const { snapshotId } = this;
    if (before === undefined || snapshotId === undefined) {
      return;
    }
    const snapshot = (await transport.getSnapshot({ snapshotId }, { abortSignal })) as
      | SessionSnapshot<State>
      | undefined;
    if (snapshot?.status === 'pending') {
      throw new AgentError({
        status: 'FAILED_PRECONDITION',
        message: `The turn in the background (snapshot ${snapshotId}) is under way. Wait for its task to end, or abort it.`,
      });
    }
    this.#beforeDetached = undefined;
    if (snapshot?.status === 'completed') {
      this.#show(snapshot.state ?? {});
      return;
    }
    this.sessionId ??= snapshot?.sessionId ?? snapshot?.state?.sessionId;
    this.snapshotId = before.snapshotId;
    this.#goBack(before);
  }

  aftermath(): TurnAftermath<State> {
    return { messages: this.messages, state: this.custom, sessionId: this.sessionId };
  }

  #goBack({ messages, artifacts, custom }: Checkpoint<State>): void {
    this.messages = messages;
    this.artifacts = artifacts;
    this.custom = custom;
  }

  #show(state: SessionState<State>): void {
    this.messages = [...(state.messages ?? [])];
    this.artifacts = [...(state.artifacts ?? [])];
    this.custom = state.custom;
    this.sessionId = state.sessionId ?? this.sessionId;
  }
}
