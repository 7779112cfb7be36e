import type { GenerationUsage } from 'genkit';
import type { AgentFinishReason, AgentInput, AgentOutput, SessionSnapshot, SessionStore } from 'genkit/beta';

/** An error in outputs and snapshots: a status name, a message, and details that were provided on purpose. */
export type RuntimeError = NonNullable<AgentOutput['error']>;

/** Describes the turn to its handler. */
export interface TurnContext {
  /** The id of the turn's future snapshot, for example to name a branch or a folder. */
  snapshotId: string;
  /** The snapshot that the turn continues from; `undefined` on a session's first turn. */
  parentSnapshotId?: string;
  /** Index of the turn in this call of the agent, from 0. */
  turnIndex: number;
}

/** The return value of a turn's handler. */
export interface TurnResult {
  /** The reason why the turn ended. Default: none is reported. */
  finishReason?: AgentFinishReason;
  /**
   * The value of the turn, as JSON: the caller gets it as `data` of the response, with the reply, and the agent's `outputKey` stores it. Default:
   * no value; the `outputKey` stores the text of the reply.
   */
  output?: unknown;
}

/** Runs one turn: reads the input, changes the session, and may return a finish reason. */
export type TurnHandler = (input: AgentInput, context: TurnContext) => Promise<TurnResult | void>;

/** The outcome of a turn. */
export type TurnOutcome = (
  | {
      /** The turn completed. */
      readonly status: 'completed';
      /** The snapshot of the turn. Missing for an agent without a store. */
      readonly snapshotId?: string;
      /** The finish reason that the handler returned. */
      readonly finishReason?: AgentFinishReason;
      /** The reason why the agent's `outputKey` refused the answer. Everything else is saved. */
      readonly error?: RuntimeError;
    }
  | {
      /** The turn threw, or could not be saved. */
      readonly status: 'failed';
      /** The error as it is reported. */
      readonly error: RuntimeError;
      /** The failed turn's own snapshot, saved for inspection. */
      readonly snapshotId?: string;
      /** The turn itself completed but its snapshot could not be saved, so the reply is still valid. */
      readonly unsaved?: true;
    }
  | {
      /** The turn was aborted. */
      readonly status: 'aborted';
    }
) & {
  /** The value of the turn; see {@link TurnResult.output}. */
  readonly output?: unknown;
  /** The sum of its model calls' usage, as its snapshot has it. */
  readonly usage?: GenerationUsage;
};

/** Runs one input as a turn: runs the handler, saves, reports. Never rejects. */
export type RunTurn = (input: AgentInput, handler: TurnHandler, turnIndex: number) => Promise<TurnOutcome>;

/** Options of a `SessionRunner` without an agent, for tests of handlers. */
export interface SessionRunnerOptions<State = unknown> {
  /** The store of the turns' snapshots. Default: turns are not saved. */
  store?: SessionStore<State>;
  /** The snapshot that the first turn continues from. Default: none. */
  lastSnapshot?: Pick<SessionSnapshot, 'snapshotId'>;
  /** A turn that throws after this signal is aborted counts as aborted, not as failed. Default: none. */
  abortSignal?: AbortSignal;
  /** Called after each turn, including failed and aborted ones. Its errors are ignored. */
  onEndTurn?: (snapshotId?: string, finishReason?: AgentFinishReason) => void;
  /** Genkit's agents call this when a run continues in the background. Stored as `SessionRunner.onDetach`; a runner never calls it. */
  onDetach?: (snapshotId: string) => void;
  /** Runs a turn. Replaces all saving by the options above. */
  runTurn?: RunTurn;
}
