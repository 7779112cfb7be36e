/**
 * A section of a request to the model, in the order of the request: `instructions` (the messages of the prompt), `tools` (their
 * declarations), `summary`, `history` (earlier turns), the data chosen for this turn (`examples`, `artifacts`, `memory`, `knowledge`), and
 * `prompt` (the current turn with its tool calls).
 */
export type Section =
  | 'instructions'
  | 'tools'
  | 'examples'
  | 'summary'
  | 'history'
  | 'artifacts'
  | 'memory'
  | 'knowledge'
  | 'prompt';

/** The first position, and the position after the last one. */
export type MessageRange = readonly [from: number, to: number];

/**
 * Why items were omitted. `strategy`: a history strategy dropped them; `section`: they exceeded the section's budget; `window`: they
 * exceeded the window's budget; `deadline`: the source did not answer in time; `failed`: the source threw or did not return documents.
 */
export type OmissionReason = 'strategy' | 'section' | 'window' | 'deadline' | 'failed';

/** A section in a {@link ContextReport}. */
export interface SectionReport {
  /** The estimated number of tokens that were sent. */
  readonly tokens: number;
  /** The number of messages, documents or tools that were sent. */
  readonly items: number;
  /** The number of omitted items. Default: 0. The items of a failed source are not counted. */
  readonly omitted?: number;
  /** Why items were omitted. */
  readonly reasons?: readonly OmissionReason[];
}

/** Counts of the data that was sent to the model in one turn. Contains no content, and takes at most 1 KB as JSON. */
export interface ContextReport {
  /** The name of the model, if it is known. */
  readonly model?: string;
  /** The budget in tokens. */
  readonly maxTokens: number;
  /** The estimated number of tokens of the request. */
  readonly estimatedTokens: number;
  /** The number of input tokens that the model reported. Optional. */
  readonly inputTokens?: number;
  /** The number of model calls so far in this turn. The other figures are for the last call. */
  readonly calls: number;
  /** Whether the model refused the length and was called again with half of the budget. */
  readonly hasRetried?: boolean;
  /** The sent and omitted items, by section. */
  readonly sections: Readonly<Partial<Record<Section, SectionReport>>>;
  /** The number of messages in the session, including the current turn. */
  readonly messages: number;
  /** Earlier messages that were sent. */
  readonly sent: readonly MessageRange[];
  /** Earlier messages that were neither sent nor covered by the summary. */
  readonly dropped: readonly MessageRange[];
  /** Messages that were sent with changed content, for example with a stub instead of a tool's output. */
  readonly changed?: readonly MessageRange[];
  /** The summary that was sent. */
  readonly summary?: {
    /** Identifies the summary. */
    readonly sha256: string;
    /** The position of the first message that it does not cover. */
    readonly to: number;
  };
  /** The memories that were sent, with their revisions, best first. */
  readonly memories?: readonly (readonly [id: string, revision: number])[];
  /** Whether the lists were too long, so that only their beginnings are included. */
  readonly isShortened?: boolean;
}
