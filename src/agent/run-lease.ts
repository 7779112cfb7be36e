import type { ActionContext, GenerationUsage } from 'genkit';
import type { AgentInput, MessageData, SessionSnapshot } from 'genkit/beta';
import { jsonEqual } from '../json/value.ts';
import { reserveSnapshotId } from '../snapshot/ids.ts';
import type { TurnRequest } from './intake.ts';

/** The input of a background turn, sufficient to run it again. */
interface StoredTurn {
  /** Without its message when the snapshot's state contains it. */
  readonly input: AgentInput;
  /** The index of the input's message in the snapshot's state. */
  readonly messageAt?: number;
}

/** Stored in the snapshot of a background turn to describe its run. A store keeps it like any unknown field. */
export interface RunRecord {
  /** The run's id: the snapshot id of its last turn. */
  readonly id: string;
  /** The agent's name, because agents may share a store. */
  readonly agent: string;
  /** The worker that owns the run while the snapshot's heartbeat is not older than the lease. */
  readonly owner: string;
  /** The owner's lease, in ms. Missing in runs of earlier versions. */
  readonly leaseMs?: number;
  /** 1, increased by each takeover. */
  readonly generation: number;
  /** The snapshot that the run's first turn continues from. */
  readonly baseId?: string;
  /** Removed once the turn has completed; never set for a run without turns. */
  readonly turn?: StoredTurn;
  /** The usage of the turn's model calls so far; moves to the snapshot's own `usage` when the turn ends. */
  readonly usage?: GenerationUsage;
  /** The user whose `user:` keys the run sees. Optional: without it the run has no user. */
  readonly userId?: string;
  /** The kept part of the caller's context. */
  readonly context?: ActionContext;
}

/** A snapshot with the record of its run. */
export type RunSnapshot<State> = SessionSnapshot<State> & { backgroundRun?: RunRecord };

/** The run record of a snapshot; `undefined` for a foreground turn and for foreign snapshots. */
export function runOf(snapshot: RunSnapshot<unknown> | undefined): RunRecord | undefined {
  return snapshot?.backgroundRun;
}

/** The input as it is stored beside a state that contains its message. */
export function storedTurn(input: AgentInput, messages: readonly MessageData[]): StoredTurn {
  const { message, ...rest } = JSON.parse(JSON.stringify(input)) as AgentInput;
  const messageAt = message ? messages.findLastIndex((other) => jsonEqual(other, message)) : -1;
  return messageAt < 0 ? { input: { ...rest, ...(message && { message }) } } : { input: rest, messageAt };
}

/** The turn of a pending snapshot; `undefined` for a run without turns. */
export function turnOf(snapshot: SessionSnapshot): TurnRequest | undefined {
  const turn = runOf(snapshot)?.turn;
  if (!turn) return undefined;
  const message = turn.messageAt === undefined ? undefined : snapshot.state?.messages?.[turn.messageAt];
  return { snapshotId: snapshot.snapshotId, input: { ...turn.input, ...(message && { message }) }, begun: false };
}

/**
 * The right to run a background run, which one process has at a time. It is written into each of the run's snapshots. A takeover writes a
 * higher generation there, and the store then refuses all writes of the former owner.
 */
export class RunLease {
  readonly #run: Omit<RunRecord, 'turn' | 'usage'>;
  #isLost = false;

  private constructor(run: Omit<RunRecord, 'turn' | 'usage'>) {
    this.#run = run;
  }

  /** The lease of a new run. */
  static first(run: Pick<RunRecord, 'id' | 'agent' | 'leaseMs' | 'baseId' | 'userId' | 'context'>): RunLease {
    return new RunLease({ ...run, owner: reserveSnapshotId(), generation: 1 });
  }

  /** The lease of a run that is taken over. */
  static next({ turn: _turn, usage: _usage, ...run }: RunRecord, leaseMs: number): RunLease {
    return new RunLease({ ...run, owner: reserveSnapshotId(), leaseMs, generation: run.generation + 1 });
  }

  get id(): string {
    return this.#run.id;
  }

  get owner(): string {
    return this.#run.owner;
  }

  get generation(): number {
    return this.#run.generation;
  }

  /** True when another process owns the run. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** The record in the snapshot of an open turn. */
  recordOf({ turn, usage }: Pick<RunRecord, 'turn' | 'usage'>): RunRecord {
    return { ...this.#run, ...(turn && { turn }), ...(usage && { usage }) };
  }

  /** The part that stays in a terminal snapshot, to detect a late save of a former owner. */
  get terminalRecord(): RunRecord {
    const { id, agent, owner, generation } = this.#run;
    return { id, agent, owner, generation };
  }

  /**
   * Whether this process may still write a snapshot of the run. Once one snapshot is lost, all are, because a takeover claims them one after the
   * other. Always true for a store that keeps no unknown fields.
   */
  holds(snapshot: SessionSnapshot | undefined): boolean {
    const found = runOf(snapshot);
    const isHeld = !found || (found.owner === this.#run.owner && found.generation === this.#run.generation);
    if (!isHeld) this.#isLost = true;
    return !this.#isLost;
  }
}
