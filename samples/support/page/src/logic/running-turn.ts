/** A turn that runs, or that ended without being saved, as the page knows it. Pure. */
import type { AgentInput, AgentStreamChunk, Artifact, Part } from 'genkitx-agents/client';
import type { SupportState } from '../../../agent/state.ts';
import type { SnapshotNode } from '../../../server/api-types.ts';
import type { Problem } from './api.ts';
import { isGood } from './tree.ts';
import { turnsOf, withoutPartial, withParts, type Turn } from './turns.ts';

/** What it takes to run a turn, and to run it again. */
export interface TurnRequest {
  sessionId: string;
  /** The snapshot that the turn continues from. Default: the turn begins the conversation. */
  parentId?: string;
  /** The customer's message. Default: none; the turn that waits in the parent is continued or run again. */
  asked?: string;
  input: AgentInput;
  /** What went on from the parent before. */
  known: string[];
}

export interface RunningTurn extends TurnRequest {
  /** By which the server keeps what it streams. */
  streamId?: string;
  /** What was said and done so far. */
  parts: Part[];
  /** The agent's state as the turn changed it. */
  custom?: SupportState;
  artifacts: Artifact[];
  /** `saved`: shown as it streamed until its snapshot is loaded. */
  phase: 'running' | 'saved' | 'failed';
  savedAs?: string;
  /** Why it failed. */
  problem?: Problem;
}

export function messageInput(text: string): AgentInput {
  return { message: { role: 'user', content: [{ text }] } };
}

export function begun(request: TurnRequest): RunningTurn {
  return { ...request, parts: [], artifacts: [], phase: 'running' };
}

/** The turn, one chunk further. */
export function further(
  turn: RunningTurn,
  { modelChunk, artifact }: AgentStreamChunk,
  custom?: SupportState,
): RunningTurn {
  return {
    ...turn,
    parts: modelChunk ? [...turn.parts, ...modelChunk.content] : turn.parts,
    custom: custom ?? turn.custom,
    artifacts: artifact ? withArtifact(turn.artifacts, artifact) : turn.artifacts,
  };
}

/** Artifacts of one name replace each other. */
export function withArtifact(artifacts: readonly Artifact[], added: Artifact): Artifact[] {
  return [...artifacts.filter(({ name }) => name === undefined || name !== added.name), added];
}

/** The turns of a conversation, with the one that runs as the last. */
export function turnsWith(messages: Parameters<typeof turnsOf>[0], running: RunningTurn | undefined): Turn[] {
  if (!running) return turnsOf(messages);
  const { asked, parts } = running;
  if (asked !== undefined) return [...turnsOf(messages), { asked, steps: withParts([], parts) }];
  const turns = turnsOf(withoutPartial(messages));
  const last = turns.pop();
  return last ? [...turns, { ...last, steps: withParts(last.steps, parts) }] : turns;
}

/**
 * The snapshot that the turn was saved as after all: of one whose end the page did not hear of, or that another tab ran.
 */
export function savedMeanwhile(nodes: readonly SnapshotNode[], turn: RunningTurn): SnapshotNode | undefined {
  const { parentId, asked, known } = turn;
  return nodes.find(
    (node) =>
      node.parentId === parentId &&
      parentId !== undefined &&
      isGood(node) &&
      !known.includes(node.snapshotId) &&
      (asked === undefined || node.preview.asked.slice(0, 50) === asked.replaceAll(/\s+/g, ' ').trim().slice(0, 50)),
  );
}
