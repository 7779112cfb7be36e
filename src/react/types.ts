import type { AgentError } from '../client/errors.ts';
import type { AgentAPI, AgentInterrupt, Artifact, MessageData, TurnOptions } from '../client/types.ts';
import type { TurnStorage } from './kept-turns.ts';
import type { SnapshotNode } from './snapshot-tree.ts';

/** Where a conversation begins. */
export interface Beginning {
  /** The id of the session. */
  sessionId: string;
  /** The snapshot that the first turn continues from. Default: none. */
  snapshotId?: string;
}

/** Options of a conversation in a page. */
export interface LiveChatOptions<State = unknown, Node extends SnapshotNode = SnapshotNode> {
  /** The agent: the result of `remoteAgent()`. */
  agent: AgentAPI<State>;
  /** The session. Default: a new one, which gets its id from the first turn. */
  sessionId?: string;
  /** The snapshot to show. Default: the latest, or the one that a running turn continues from. */
  snapshotId?: string;
  /**
   * Lists the snapshots of a session, the oldest first, from a route of your own over the store's `listSnapshots`. Default: `branches` and `tree`
   * have only the snapshots that this page has read.
   */
  listSnapshots?: (sessionId: string) => Promise<readonly Node[]>;
  /**
   * Called before the first turn of a session, with the session's id if it has one. With the id that it returns, a reload during the first turn
   * finds the turn. With a `snapshotId`, the first message can be edited within the session. Default: the server names the session.
   */
  begin?: (sessionId: string | undefined) => Beginning | Promise<Beginning>;
  /** Where turns are kept for a reload and for other tabs. `false`: nowhere. Default: `localStorage`. */
  storage?: TurnStorage | false;
  /** The prefix of the keys in `storage`: a page with several users puts the user in it. Default: `genkitx-agents.turn`. */
  storageKey?: string;
}

/** A shown turn that has alternatives on other branches. */
export interface AgentBranch {
  /** The index, in `messages`, of the turn's message. */
  readonly index: number;
  /** The newest snapshot of each branch, the oldest branch first; for `goTo`. */
  readonly snapshotIds: readonly string[];
  /** The index of the shown branch in `snapshotIds`. */
  readonly shown: number;
}

/** A conversation as a page shows it. */
export interface ChatView<State = unknown, Node extends SnapshotNode = SnapshotNode> {
  /** The id of the session. Missing until a new session has one. */
  readonly sessionId?: string;
  /** The shown snapshot, which the next turn continues from. */
  readonly snapshotId?: string;
  /** The conversation, with the user's message as soon as it is sent, and the reply as it is streamed. */
  readonly messages: readonly MessageData[];
  /**
   * `loading`: the session is being read. `submitted`: a turn was sent. `streaming`: its reply arrives. `error`: the turn failed, or the session
   * can't be read; `error` says why. `ready`: none of these.
   */
  readonly status: 'loading' | 'ready' | 'submitted' | 'streaming' | 'error';
  /** A turn of the session runs, also when another point of it is shown. `send` does nothing meanwhile. */
  readonly isBusy: boolean;
  /** The shown reply was stopped: `retry` runs it again. */
  readonly isStopped: boolean;
  /** The connection broke in the middle of a turn, and is being opened again. */
  readonly reconnecting: boolean;
  /** The custom state, as the turn changes it. */
  readonly state?: State;
  /** The artifacts. */
  readonly artifacts: readonly Artifact[];
  /** The tool requests that wait for the user. Answer all of them at once with `respond`. */
  readonly interrupts: readonly AgentInterrupt[];
  /** The shown turns that have alternatives on other branches. */
  readonly branches: readonly AgentBranch[];
  /** The known snapshots of the session, the oldest first. */
  readonly tree: readonly Node[];
  /** The error of the turn, or of reading the session. */
  readonly error?: AgentError;
}

/** Options of a turn that a page can choose. */
export type SendOptions = Pick<TurnOptions, 'model' | 'config'>;
