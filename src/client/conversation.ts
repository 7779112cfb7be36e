import { applyPatch } from '../json/apply.ts';
import type { TurnAftermath } from './response.ts';
import type {
  AgentInit,
  AgentInput,
  AgentOutput,
  AgentStreamChunk,
  Artifact,
  MessageData,
  SessionSnapshot,
  SessionState,
} from './types.ts';

type Patch = NonNullable<AgentStreamChunk['customPatch']>;

/** What a turn that comes to nothing goes back to. */
interface Checkpoint<State> {
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

  /** A turn begins. */
  begin(input: AgentInput): Checkpoint<State> {
    const { messages, artifacts, custom } = this;
    if (input.message) {
      this.messages = [...messages, input.message];
    }
    return { messages, artifacts, custom };
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
    if (output.finishReason === 'failed' || output.finishReason === 'aborted') {
      // It came to nothing: neither its message nor its changes belong to the conversation.
      this.messages = before.messages;
      this.artifacts = before.artifacts;
      this.custom = before.custom;
    } else {
      this.messages = output.message ? [...this.messages, output.message] : this.messages;
      this.artifacts = mergeByName(this.artifacts, output.artifacts ?? []);
    }
    if (output.state) {
      this.#clientState = output.state;
      this.#show(output.state);
    }
  }

  aftermath(): TurnAftermath<State> {
    return { messages: this.messages, state: this.custom, sessionId: this.sessionId };
  }

  #show(state: SessionState<State>): void {
    this.messages = [...(state.messages ?? [])];
    this.artifacts = [...(state.artifacts ?? [])];
    this.custom = state.custom;
    this.sessionId = state.sessionId ?? this.sessionId;
  }
}

/** An artifact replaces the one of its name; without a name it is always another. */
function mergeByName(known: Artifact[], news: Artifact[]): Artifact[] {
  const merged = [...known];
  for (const artifact of news) {
    const at = artifact.name === undefined ? -1 : merged.findIndex(({ name }) => name === artifact.name);
    merged[at < 0 ? merged.length : at] = artifact;
  }
  return merged;
}
