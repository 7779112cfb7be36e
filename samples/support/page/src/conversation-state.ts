/** What the page knows of the conversation it shows, and how that changes. Pure. */
import type { AgentStreamChunk, Artifact, SessionSnapshot } from 'genkitx-agents/client';
import type { SupportState } from '../../agent/state.ts';
import type { SnapshotNode } from '../../server/api-types.ts';
import { withChunk, type Turn } from './turns.ts';

export interface ConversationState {
  /** All snapshots of the session, the oldest first. */
  nodes: SnapshotNode[];
  /** The point that is shown. */
  shown?: SessionSnapshot<SupportState>;
  /** The turn that is being answered. */
  live?: LiveTurn;
  /** What went wrong, as a sentence. */
  problem?: string;
  /** A turn went wrong, which is so still when the conversation is read again. */
  isOfTurn?: boolean;
}

export interface LiveTurn {
  turn: Turn;
  /** The agent's state as the turn changes it. */
  custom?: SupportState;
  artifacts: Artifact[];
  /** The snapshot that the finished turn was saved as; the turn is shown as it streamed until that snapshot is loaded. */
  savedAs?: string;
}

export type ConversationEvent =
  | {
      type: 'loaded';
      nodes: SnapshotNode[];
      shown?: SessionSnapshot<SupportState>;
      problem?: string;
      isAgain?: boolean;
    }
  | { type: 'asked'; text: string }
  | { type: 'chunk'; chunk: AgentStreamChunk; custom?: SupportState }
  | { type: 'saved'; snapshotId?: string }
  | { type: 'failed'; problem?: string; isOfTurn?: boolean }
  | { type: 'dismissed' };

export const EMPTY: ConversationState = { nodes: [] };

export function reduce(state: ConversationState, event: ConversationEvent): ConversationState {
  switch (event.type) {
    case 'loaded':
      return {
        nodes: event.nodes,
        shown: event.shown,
        ...(event.isAgain && state.isOfTurn && !event.problem
          ? { problem: state.problem, isOfTurn: true }
          : { problem: event.problem }),
        live: stillLive(state.live, event.shown),
      };
    case 'asked':
      return { ...state, problem: undefined, live: { turn: { asked: event.text, steps: [] }, artifacts: [] } };
    case 'chunk':
      return state.live ? { ...state, live: further(state.live, event) } : state;
    case 'saved':
      return { ...state, live: state.live && { ...state.live, savedAs: event.snapshotId } };
    case 'failed':
      return { ...state, live: undefined, problem: event.problem, isOfTurn: event.isOfTurn };
    case 'dismissed':
      return { ...state, problem: undefined };
  }
}

function further(live: LiveTurn, { chunk, custom }: Extract<ConversationEvent, { type: 'chunk' }>): LiveTurn {
  return {
    ...live,
    turn: withChunk(live.turn, chunk),
    custom: custom ?? live.custom,
    artifacts: chunk.artifact ? withArtifact(live.artifacts, chunk.artifact) : live.artifacts,
  };
}

function stillLive(live: LiveTurn | undefined, shown: SessionSnapshot | undefined): LiveTurn | undefined {
  return live?.savedAs && live.savedAs === shown?.snapshotId ? undefined : live;
}

/** Artifacts of one name replace each other. */
export function withArtifact(artifacts: readonly Artifact[], added: Artifact): Artifact[] {
  return [...artifacts.filter(({ name }) => name === undefined || name !== added.name), added];
}
