import type { GenerateRequest, MessageData, ToolArgument } from 'genkit';
import type { OmissionReason } from '../snapshot/context-report.ts';

/** A memory, or a profile, as it is placed in a request. */
export interface MemoryItem {
  /** The text for the model. */
  readonly text: string;
  /** The id of the memory. Missing when the item is not a single memory. */
  readonly id?: string;
  /** Its revision. */
  readonly revision?: number;
}

/** A group of items that are placed together. */
export interface MemoryBlock {
  /** A profile, or memories that were found. */
  readonly title: 'profile' | 'memory';
  /** Its position in the request. */
  readonly place: 'system' | 'before-history' | 'before-prompt';
  /** Best first. */
  readonly items: readonly MemoryItem[];
  /** Maximum tokens of the items. */
  readonly maxTokens: number;
  /** Number of items that did not fit. */
  readonly omitted: number;
  /** The reasons why items are missing. */
  readonly reasons: readonly OmissionReason[];
}

/** The blocks that were found for a turn. */
export interface FoundBlocks {
  /** The blocks. */
  readonly blocks: readonly MemoryBlock[];
  /** Records that the memories in the blocks are used. Called when they are placed. */
  readonly noteUse: () => void;
}

/** A search for memories that began before its turn. */
export interface StartedSearch {
  /** The text to search for. */
  readonly text: string;
  /** Never rejects. */
  readonly finding: Promise<FoundBlocks>;
}

/** The facts that were learned from the first messages of a session. */
export interface SessionFacts {
  /** The facts, oldest first. */
  readonly texts: readonly string[];
  /** The position of the first message that was not learned from. */
  readonly to: number;
  /** SHA-256 of the messages before it, in hex. */
  readonly sha256: string;
}

/** One model call of a turn. */
export interface PlacedCall {
  /** The request. */
  readonly request: GenerateRequest;
  /** The session's message behind each message of the request; `undefined` for one of the prompt. */
  readonly origins: readonly (MessageData | undefined)[];
  /** The signal of the turn. */
  readonly abortSignal?: AbortSignal | undefined;
}

/** The memory of an agent during one turn. It is searched once for all model calls of the turn. Its methods never reject. */
export interface TurnMemory {
  /** Tools for the model, for one call of `generate`: Genkit registers them for it. */
  tools(): ToolArgument[];

  /** Called before each model call. If the request has tool outputs, memories that the model then saves are trusted less. */
  noteRequest(request: GenerateRequest): void;

  /** The blocks to place. Called once a turn; resolves within the memory's deadline. */
  blocks(query: {
    readonly text: string;
    readonly abortSignal?: AbortSignal | undefined;
  }): Promise<readonly MemoryBlock[]>;

  /** The facts that were learned from the session without its last `keepTurns` turns and the current one; `undefined` for none. */
  sessionFacts(messages: readonly MessageData[], keepTurns: number): Promise<SessionFacts | undefined>;

  /** The request with the memories in it, for a model call without a window. */
  place(call: PlacedCall): Promise<GenerateRequest>;
}
