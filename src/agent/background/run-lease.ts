import type { ActionContext, GenerationUsage } from 'genkit';
import type { AgentInput, MessageData, SessionSnapshot } from 'genkit/beta';
import { jsonEqual } from '../../json/value.ts';
import { reserveSnapshotId } from '../../snapshot/ids.ts';
import type { TurnRequest } from '../turn/intake.ts';

/** What a turn in the background was asked: enough to run it again. */
interface StoredTurn {
  /** Without its message where that is in the snapshot's state anyway. */
  readonly input: AgentInput;
  /** The place of the input's message in the snapshot's state. */
  readonly messageAt?: number;
}

/** What the snapshot of a turn in the background says about the run that it is part of. A store keeps it as it keeps any field. */
export interface RunRecord {
  /** The run, by the snapshot of its last turn. */
  readonly id: string;
  /** The agent's name: agents may share a store. */
  readonly agent: string;
  /** Who runs it, for as long as the snapshot's heartbeat is not older than the lease. */
  readonly owner: string;
  /** The lease of that one, in ms; absent in runs that earlier versions began. */
  readonly leaseMs?: number;
  /** 1, and one more with each takeover. */
  readonly generation: number;
  /** The snapshot that the run's first turn continues from. */
  readonly baseId?: string;
  /** Gone once the turn has completed; never there for a run without turns. */
  readonly turn?: StoredTurn;
  /** What the turn's model calls used so far; moves to the snapshot's own `usage` when the turn ends. */
  readonly usage?: GenerationUsage;
  /** Whose `user:` keys the run sees; nobody's when absent. */
  readonly userId?: string;
  /** What of the caller's context is to be kept. */
  readonly context?: ActionContext;
}

/** A snapshot with what is written into it about its run. */
export type RunSnapshot<State> = SessionSnapshot<State> & { backgroundRun?: RunRecord };

/** What is stored about the run of a snapshot; `undefined` for a turn in the foreground, and in what other writers saved. */
export function runOf(snapshot: RunSnapshot<unknown> | undefined): RunRecord | undefined {
  return snapshot?.backgroundRun;
}

/** The input as it is stored beside a state that holds its message. */
export function storedTurn(input: AgentInput, messages: readonly MessageData[]): StoredTurn {
  const { message, ...rest } = JSON.parse(JSON.stringify(input)) as AgentInput;
  const messageAt = message ? messages.findLastIndex((other) => jsonEqual(other, message)) : -1;
  return messageAt < 0 ? { input: { ...rest, ...(message && { message }) } } : { input: rest, messageAt };
}

/** The turn that a pending snapshot stands for; `undefined` for a run without turns. */
export function turnOf(snapshot: SessionSnapshot): TurnRequest | undefined {
  const turn = runOf(snapshot)?.turn;
  if (!turn) return undefined;
  const message = turn.messageAt === undefined ? undefined : snapshot.state?.messages?.[turn.messageAt];
  return { snapshotId: snapshot.snapshotId, input: { ...turn.input, ...(message && { message }) }, begun: false };
}

/**
 * The right to run a background run, which one process has at a time. It is written into each of the run's snapshots; whoever takes the run
 * over writes a higher generation there, and from then on nothing that this one writes is taken.
 */
export class RunLease {
  readonly #run: Omit<RunRecord, 'turn' | 'usage'>;
  #isLost = false;

  private constructor(run: Omit<RunRecord, 'turn' | 'usage'>) {
    this.#run = run;
  }

  /** Of a run that begins. */
  static first(run: Pick<RunRecord, 'id' | 'agent' | 'leaseMs' | 'baseId' | 'userId' | 'context'>): RunLease {
    return new RunLease({ ...run, owner: reserveSnapshotId(), generation: 1 });
  }

  /** Of a run that somebody else had. */
  static next({ turn: _turn, usage: _usage, ...run }: RunRecord, leaseMs: number): RunLease {
    return new RunLease({ ...run, owner: reserveSnapshotId(), leaseMs, generation: run.generation + 1 });
  }

  get id(): string {
    return this.#run.id;
  }

  get generation(): number {
    return this.#run.generation;
  }

  /** Somebody else has the run. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** What a turn's snapshot says while the turn is open. */
  recordOf({ turn, usage }: Pick<RunRecord, 'turn' | 'usage'>): RunRecord {
    return { ...this.#run, ...(turn && { turn }), ...(usage && { usage }) };
  }

  /** What stays of it in a settled snapshot: a late save of somebody else is told by it. */
  get trace(): RunRecord {
    const { id, agent, owner, generation } = this.#run;
    return { id, agent, owner, generation };
  }

  /**
   * Whether a snapshot of the run is this one's to write still. Once one of them is not, none is: whoever takes a run over claims its snapshots
   * one after the other. A store that keeps no unknown fields can't say.
   */
  holds(snapshot: SessionSnapshot | undefined): boolean {
    const found = runOf(snapshot);
    const isHeld = !found || (found.owner === this.#run.owner && found.generation === this.#run.generation);
    if (!isHeld) this.#isLost = true;
    return !this.#isLost;
  }
}
