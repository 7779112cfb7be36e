import { patched } from '../apply-unchecked.ts';
import { mergeByName } from '../../json/named-list.ts';
import { AgentError } from '../errors.ts';
import { withoutValue } from './parts.ts';
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

/** The conversation before a turn. It is restored when the turn fails. */
interface TurnStart<State> {
  snapshotId: string | undefined;
  messages: MessageData[];
  artifacts: Artifact[];
  custom: State | undefined;
}

/**
 * The conversation of a chat. Arrays and states are replaced, never changed in place, so that returned values stay unchanged.
 */
export class Conversation<State> {
  snapshotId: string | undefined;
  sessionId: string | undefined;
  messages: MessageData[] = [];
  artifacts: Artifact[] = [];
  custom: State | undefined;

  /** The `init` of the caller. */
  readonly #init: AgentInit<State>;
  readonly #stateManagement: 'server' | 'client' | undefined;
  /** An output has named the current snapshot or state, so `#init` is no longer used. */
  #hasBegun = false;
  /** The whole state from an agent without a store, for the next turn. Never built from patches. */
  #clientState: SessionState<State> | undefined;
  /** The conversation before the turn that now runs in the background. */
  #beforeDetached: TurnStart<State> | undefined;

  constructor(init: AgentInit<State> = {}, stateManagement?: 'server' | 'client') {
    this.#init = init;
    this.#stateManagement = stateManagement;
    this.snapshotId = init.snapshotId;
    this.sessionId = init.sessionId;
    if (init.state) {
      this.#show(init.state);
    }
  }

  /** The conversation of a snapshot. */
  static of<State>(snapshot: SessionSnapshot<State>, stateManagement?: 'server' | 'client'): Conversation<State> {
    const conversation = new Conversation<State>({ snapshotId: snapshot.snapshotId }, stateManagement);
    conversation.#show(snapshot.state ?? {});
    conversation.sessionId = snapshot.sessionId ?? snapshot.state?.sessionId;
    return conversation;
  }

  /** The `init` of the next turn. */
  nextInit(): AgentInit<State> {
    if (!this.#hasBegun) {
      return this.#init;
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
    return this.#init;
  }

  /** The current conversation, for {@link end}. */
  turnStart(): TurnStart<State> {
    const { snapshotId, messages, artifacts, custom } = this;
    return { snapshotId, messages, artifacts, custom };
  }

  /** A turn begins. */
  begin(input: AgentInput): void {
    if (input.message) {
      this.messages = [...this.messages, input.message];
    }
  }

  /** A turn was sent to the background; {@link refresh} reads its outcome. */
  get isStale(): boolean {
    return this.#beforeDetached !== undefined;
  }

  /**
   * Applies a change of the agent's custom state.
   *
   * @throws PatchError when the patch does not apply; the state is then unchanged.
   */
  change(patch: Patch): void {
    const [first] = patch;
    // The state is removed: JSON drops the `undefined` value of the patch.
    const isRemoved = patch.length === 1 && first?.op === 'replace' && first.path === '' && first.value === undefined;
    this.custom = isRemoved ? undefined : patched(this.custom, patch);
  }

  /** A turn ended. */
  end(output: AgentOutput<State>, before: TurnStart<State>): void {
    this.#hasBegun ||= (output.snapshotId ?? output.sessionId ?? output.state) !== undefined;
    this.snapshotId = output.snapshotId ?? this.snapshotId;
    this.sessionId = output.sessionId ?? this.sessionId;
    if (output.finishReason === 'detached') {
      this.#beforeDetached = before;
    }
    const isDropped = output.finishReason === 'aborted' && this.snapshotId === before.snapshotId;
    if (output.finishReason === 'failed' || isDropped) {
      // The turn failed: neither its message nor its changes belong to the conversation.
      this.#restore(before);
    } else {
      this.messages = output.message ? [...this.messages, withoutValue(output.message)] : this.messages;
      this.artifacts = mergeByName(this.artifacts, output.artifacts ?? []);
    }
    if (output.state) {
      this.#clientState = output.state;
      this.#show(output.state);
    }
  }

  /**
   * Reads the outcome of a turn in the background. The next turn continues from it or, if it did not complete, from the state before.
   *
   * @throws AgentError `FAILED_PRECONDITION` while it is running.
   */
  async refresh(transport: AgentTransport, abortSignal: AbortSignal): Promise<void> {
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
        message: `The background turn (snapshot ${snapshotId}) is still running. Wait for it, or abort it.`,
      });
    }
    this.#beforeDetached = undefined;
    if (snapshot?.status === 'completed') {
      this.#show(snapshot.state ?? {});
      return;
    }
    this.sessionId ??= snapshot?.sessionId ?? snapshot?.state?.sessionId;
    this.snapshotId = before.snapshotId;
    this.#restore(before);
  }

  #restore({ messages, artifacts, custom }: TurnStart<State>): void {
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
