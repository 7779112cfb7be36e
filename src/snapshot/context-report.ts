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

/** First position, and the position after the last one. */
export type MessageRange = readonly [from: number, to: number];

/**
 * Why items were left out: `strategy`, a history strategy dropped them; `section`, they exceeded the section's budget; `window`, they
 * exceeded the window's budget; `deadline`, the source did not answer in time; `failed`, the source threw or did not return documents.
 */
export type OmissionReason = 'strategy' | 'section' | 'window' | 'deadline' | 'failed';

/** A section in a {@link ContextReport}. */
export interface SectionReport {
  /** Estimated tokens that were sent. */
  readonly tokens: number;
  /** Messages, documents or tools that were sent. */
  readonly items: number;
  /** Items that were left out. Default: 0. A source that failed may have had any number. */
  readonly omitted?: number;
  /** The reasons for what was left out. */
  readonly reasons?: readonly OmissionReason[];
}

/** What the model was sent in one turn, in counts. It has no content, and takes at most 1 KB as JSON. */
export interface ContextReport {
  /** The name of the model. Default: it is not known. */
  readonly model?: string;
  /** The budget in tokens. */
  readonly maxTokens: number;
  /** Estimated tokens of the request. */
  readonly estimatedTokens: number;
  /** Input tokens as the model counted them. Default: it did not say. */
  readonly inputTokens?: number;
  /** Model calls so far in this turn. The other figures are of the last one. */
  readonly calls: number;
  /** The model refused the length, and was called once more at half the budget. */
  readonly hasRetried?: boolean;
  /** What was sent and left out, by section. */
  readonly sections: Readonly<Partial<Record<Section, SectionReport>>>;
  /** Messages of the session; the current turn included. */
  readonly messages: number;
  /** Earlier messages that were sent. */
  readonly sent: readonly MessageRange[];
  /** Earlier messages that were neither sent nor covered by the summary. */
  readonly dropped: readonly MessageRange[];
  /** Messages that were sent with changed content, say with a tool output replaced by a stub. */
  readonly changed?: readonly MessageRange[];
  /** The summary that was sent. It covers the messages before `to`. */
  readonly summary?: {
    /** Names the summary. */
    readonly sha256: string;
    /** The position of the first message that it does not cover. */
    readonly to: number;
  };
  /** The memories that were sent, with their revisions, best first. */
  readonly memories?: readonly (readonly [id: string, revision: number])[];
  /** The lists were too long; only their beginnings are here. */
  readonly isShortened?: boolean;
}
