import { mergeByName, putByName } from '../json/named-list.ts';
import type {
  AgentChunk,
  AgentInput,
  AgentInterrupt,
  AgentResponse,
  AgentSnapshot,
  Artifact,
  MessageData,
  SessionSnapshot,
} from '../client/types.ts';
import { AgentError, readErrorRecord } from '../client/errors.ts';
import { withoutValue } from '../client/chat/parts.ts';
import { finalMessages, withChunk, type StreamedMessage } from './streamed-messages.ts';

/** A point of the conversation: a snapshot, or the beginning. */
export interface Point<State> {
  snapshotId?: string;
  parentId?: string;
  status?: SessionSnapshot['status'];
  messages: readonly MessageData[];
  state?: State;
  artifacts: readonly Artifact[];
  interrupts: readonly AgentInterrupt[];
}

/** A running, failed or stopped turn that continues from a point. */
export interface RunningTurn<State> {
  parentId: string | undefined;
  /** Missing when the turn's snapshot has no user message. */
  input?: AgentInput;
  /** The parent's children before the turn. */
  known: readonly string[];
  /** `stopped`: the user stopped it, and nothing was saved. */
  phase: 'running' | 'failed' | 'stopped';
  /** A chunk has arrived. */
  isStreaming: boolean;
  messages: StreamedMessage[];
  state?: State;
  artifacts: readonly Artifact[];
  reconnecting: boolean;
  error?: AgentError;
}

export const BEGINNING: Point<never> = { messages: [], artifacts: [], interrupts: [] };

export function pointOf<State>(snapshot: AgentSnapshot<State>): Point<State> {
  const { snapshotId, parentId, status, state = {}, interrupts } = snapshot;
  const { messages = [], custom, artifacts = [] } = state;
  return { snapshotId, parentId, status, messages, state: custom, artifacts, interrupts };
}

type TurnStart = Pick<RunningTurn<never>, 'parentId' | 'input' | 'known'>;

export function newTurn<State>({ parentId, input, known }: TurnStart): RunningTurn<State> {
  const empty = { isStreaming: false, messages: [], artifacts: [], reconnecting: false };
  return { parentId, input, known, phase: 'running', ...empty };
}

/** The turn after a chunk. */
export function afterChunk<State>(turn: RunningTurn<State>, { raw, custom }: AgentChunk<State>): RunningTurn<State> {
  return {
    ...turn,
    isStreaming: true,
    messages: withChunk(turn.messages, raw),
    ...(custom !== undefined && { state: custom }),
    ...(raw.artifact && { artifacts: put(turn.artifacts, raw.artifact) }),
  };
}

/** The turn of a snapshot that a conversation can't continue from: it runs in the background, or it failed. */
export function turnOf<State>(snapshot: AgentSnapshot<State>, before: Point<State>): RunningTurn<State> {
  const { messages, state, artifacts } = pointOf(snapshot);
  const own = messages.slice(before.messages.length);
  const [userMessage, ...rest] = own;
  const input = userMessage?.role === 'user' ? { message: userMessage } : undefined;
  const error =
    snapshot.status === 'expired'
      ? new AgentError({ status: 'UNAVAILABLE', message: 'The server that ran this turn ended.' })
      : new AgentError(readErrorRecord(snapshot.error, 'UNKNOWN'));
  const turn = newTurn<State>({ parentId: before.snapshotId, input, known: [] });
  const shown = { ...turn, messages: input ? rest : own, state, artifacts };
  return snapshot.status === 'pending' ? shown : { ...shown, phase: 'failed', error };
}

/** The messages of the point and of its turn. A turn that runs again replaces a partial reply. */
export function messagesWith<State>(
  { messages }: Point<State>,
  { input, messages: streamed }: RunningTurn<State>,
): readonly MessageData[] {
  const before = input && !input.message && messages.at(-1)?.metadata?.['partial'] ? messages.slice(0, -1) : messages;
  return [...before, ...(input?.message ? [input.message] : []), ...streamed];
}

export function artifactsWith<State>(point: Point<State>, turn: RunningTurn<State>): readonly Artifact[] {
  return turn.artifacts.length === 0 ? point.artifacts : mergeByName(point.artifacts, turn.artifacts);
}

/** The point after a turn. */
export function pointAfter<State>(
  point: Point<State>,
  turn: RunningTurn<State>,
  response: AgentResponse<State>,
): Point<State> {
  const { message, snapshotId, finishReason, interrupts, state, artifacts } = response;
  const streamed = finalMessages(turn.messages, message && withoutValue(message));
  return {
    snapshotId,
    parentId: point.snapshotId,
    status: finishReason === 'aborted' ? 'aborted' : 'completed',
    messages: messagesWith(point, { ...turn, messages: streamed }),
    state: state ?? turn.state ?? point.state,
    artifacts: mergeByName(point.artifacts, artifacts.length > 0 ? artifacts : turn.artifacts),
    interrupts,
  };
}

/** The index of a user message, by its number, 1 for the first. */
export function indexOfTurn(messages: readonly MessageData[], turn: number): number {
  let turns = 0;
  return messages.findIndex(({ role }) => role === 'user' && ++turns === turn);
}

/** The number of user messages. */
export function turnsIn(messages: readonly MessageData[] = []): number {
  return messages.filter(({ role }) => role === 'user').length;
}

function put(artifacts: readonly Artifact[], added: Artifact): readonly Artifact[] {
  const all = [...artifacts];
  putByName(all, added);
  return all;
}
