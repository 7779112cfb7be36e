import type { Conversation } from './conversation.ts';
import { AgentError } from '../errors.ts';
import { interruptsOf } from './interrupt.ts';
import { PartsView } from './parts-view.ts';
import type {
  AgentFinishReason,
  AgentInterrupt,
  AgentOutput,
  AgentResponse,
  Artifact,
  MessageData,
  ModelUsage,
} from '../types.ts';

/** A turn's output with its accessors. All values are as of the turn's end. */
export class TurnResponse<State = unknown, O = unknown> extends PartsView<O | null> implements AgentResponse<State, O> {
  readonly raw: AgentOutput<State>;
  readonly messages: MessageData[];
  /** The output's custom state. An agent with a store sends none; then the state that the chat tracked. */
  readonly state?: State;
  readonly sessionId?: string;

  constructor(raw: AgentOutput<State>, after: Conversation<State>) {
    super(raw.message?.content);
    this.raw = raw;
    this.messages = after.messages;
    this.state = raw.state?.custom ?? after.custom;
    this.sessionId = raw.sessionId ?? after.sessionId;
  }

  get message(): MessageData | undefined {
    return this.raw.message;
  }

  get output(): O | null {
    return this.data;
  }

  get interrupts(): AgentInterrupt[] {
    return interruptsOf(this.raw.message);
  }

  get finishReason(): AgentFinishReason {
    return this.raw.finishReason ?? 'unknown';
  }

  get usage(): ModelUsage {
    return this.raw.usage ?? {};
  }

  get finishMessage(): string | undefined {
    return this.raw.error?.message;
  }

  get snapshotId(): string | undefined {
    return this.raw.snapshotId;
  }

  get artifacts(): Artifact[] {
    return this.raw.artifacts ?? this.raw.state?.artifacts ?? [];
  }

  /** @throws AgentError `FAILED_PRECONDITION` when the model was blocked or answered nothing. */
  assertValid(): void {
    if (this.finishReason === 'blocked') {
      throw this.#invalid('The model blocked this turn.');
    }
    if (!this.raw.message) {
      throw this.#invalid('This turn has no reply.');
    }
  }

  #invalid(message: string): AgentError<State> {
    const because = this.finishMessage ? ` ${this.finishMessage}` : '';
    return new AgentError<State>({ status: 'FAILED_PRECONDITION', message: message + because, response: this });
  }
}
