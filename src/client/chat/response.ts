import { AgentError } from '../errors.ts';
import { interruptsOf } from './interrupt.ts';
import { dataOf, mediaOf, reasoningOf, textOf, toolRequestsOf } from './parts.ts';
import type {
  AgentFinishReason,
  AgentInterrupt,
  AgentOutput,
  AgentResponse,
  Artifact,
  MessageData,
  ModelUsage,
  ToolRequestPart,
} from '../types.ts';

/** The conversation at the end of a turn. */
export interface ConversationView<State> {
  messages: MessageData[];
  state: State | undefined;
  sessionId: string | undefined;
}

/** A turn's output with its accessors. All values are as of the turn's end. */
export class TurnResponse<State = unknown, O = unknown> implements AgentResponse<State, O> {
  readonly raw: AgentOutput<State>;
  readonly messages: MessageData[];
  /** The output's custom state. An agent with a store sends none; then the state that the chat tracked. */
  readonly state?: State;
  readonly sessionId?: string;

  constructor(raw: AgentOutput<State>, after: ConversationView<State>) {
    this.raw = raw;
    this.messages = after.messages;
    this.state = raw.state?.custom ?? after.state;
    this.sessionId = raw.sessionId ?? after.sessionId;
  }

  get message(): MessageData | undefined {
    return this.raw.message;
  }

  get text(): string {
    return textOf(this.raw.message?.content);
  }

  get reasoning(): string {
    return reasoningOf(this.raw.message?.content);
  }

  get media(): AgentResponse['media'] {
    return mediaOf(this.raw.message?.content);
  }

  get data(): O | null {
    return dataOf(this.raw.message?.content) as O | null;
  }

  get output(): O | null {
    return this.data;
  }

  get toolRequests(): ToolRequestPart[] {
    return toolRequestsOf(this.raw.message?.content);
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
