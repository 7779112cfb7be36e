import type { ActionContext, GenerationUsage } from 'genkit';
import type { MessageData, SessionSnapshot, SessionSnapshotInput, SessionState, SnapshotMutator } from 'genkit/beta';
import { logger } from 'genkit/logging';
import { describeThrown, failedPrecondition, quote } from '../../errors.ts';
import { addedTo, type SessionOwner, type SnapshotLog } from '../../session/log/session-log.ts';
import type { Waits } from '../../session/tool-requests.ts';
import type { UsageField } from '../../session/usage.ts';
import { isTerminal } from '../../snapshot/status.ts';
import type { ScopeChange } from '../../store/contract.ts';
import { KeyQueue } from '../../store/key-queue.ts';
import { mustHaveStore, type AgentDefinition } from '../agent-definition.ts';
import { LeafGuard, type LeafGuardOptions } from './leaf-guard.ts';
import { statusOf } from '../runtime-error.ts';
import { runOf, type RunLease, type RunRecord } from '../background/run-lease.ts';
import type { TurnEnding } from '../turn-ending.ts';
import { ownershipOf } from '../open/visible-snapshot.ts';

/** What a snapshot holds of its turn. */
export interface TurnContent<State> extends Waits {
  readonly state: SessionState<State>;
}

/** What a snapshot says besides where it belongs. */
export type Content<State> = Pick<SessionSnapshotInput<State>, 'status' | 'finishReason' | 'error' | 'heartbeatAt'> &
  TurnContent<State> &
  UsageField & { backgroundRun?: RunRecord };

/** The heartbeat of a run that was let go: older than any lease. */
const LONG_AGO = new Date(0).toISOString();
/** Its owner. */
const NOBODY = '';

/** What comes with a turn that completed. */
export interface Completion {
  /** The messages that it began with. */
  readonly before: readonly MessageData[] | undefined;
  /** What it changed of what the session shares with others; applied when the turn is saved, and not otherwise. */
  readonly scopes: readonly ScopeChange[];
}

interface Saved {
  readonly snapshotId: string;
}

/**
 * Writes the snapshots of one call of an agent. A snapshot that somebody else settled, removed, or took over
 * stays as that left it.
 */
export class SnapshotWriter<State> {
  readonly #agent: AgentDefinition<State>;
  readonly #sessionId: string;
  readonly #context: ActionContext | undefined;
  readonly #owner: SessionOwner | undefined;
  /** Turns that go on in the background: their snapshots are there, unless somebody removed them. */
  readonly #pending = new Set<string>();
  /** Writes of one snapshot come one after the other: a turn may end while it is being stored as pending. */
  readonly #writes = new KeyQueue();
  #lease: RunLease | undefined;
  readonly #guard: LeafGuard<State>;

  constructor(options: LeafGuardOptions<State>) {
    const { agent, sessionId, context, owner } = options;
    this.#agent = agent;
    this.#sessionId = sessionId;
    this.#guard = new LeafGuard(options);
    this.#context = context;
    this.#owner = owner;
  }

  /**
   * The call goes on in the background, by this right.
   *
   * @param snapshotIds Its turns that are stored as pending already.
   */
  runAs(lease: RunLease, snapshotIds: readonly string[] = []): void {
    this.#lease = lease;
    for (const snapshotId of snapshotIds) this.#pending.add(snapshotId);
  }

  /** The caller of these turns has left. */
  get isInBackground(): boolean {
    return this.#lease !== undefined;
  }

  /** Whether another process has taken the run over. */
  get isLost(): boolean {
    return this.#lease?.isLost === true;
  }

  /** Whether a snapshot is this call's to write still. */
  holds(snapshot: SessionSnapshot | undefined): boolean {
    return this.#lease?.holds(snapshot) ?? true;
  }

  /** Whether a turn goes on in the background as far as the store may know. */
  hasPended(snapshotId: string): boolean {
    return this.#pending.has(snapshotId);
  }

  /**
   * Saves how a turn ended. Answers the id that the store saved under; nothing when the snapshot was aborted, removed, or taken over meanwhile.
   */
  save(
    snapshotId: string,
    parentId: string | undefined,
    content: Content<State>,
    completion?: Completion,
  ): Promise<Saved | undefined> {
    return this.#writes.run(snapshotId, () => this.#save(snapshotId, parentId, content, completion));
  }

  async #save(
    snapshotId: string,
    parentId: string | undefined,
    content: Content<State>,
    completion: Completion | undefined,
  ): Promise<Saved | undefined> {
    const store = mustHaveStore(this.#agent, 'Saving a turn');
    const run = this.#pending.has(snapshotId) && this.#lease ? { backgroundRun: this.#lease.trace } : undefined;
    const input = this.#input(snapshotId, parentId, { ...content, ...run }, completion?.before);
    const known: Known = { isOurs: true };
    const mutator: SnapshotMutator<State> = (current) => {
      known.isOurs = this.holds(current);
      known.status = current ? current.status : this.#pending.has(snapshotId) ? 'aborted' : undefined;
      return isTerminal(known.status) || !known.isOurs ? null : input;
    };
    const isNew = !this.#pending.has(snapshotId);
    const savedId = await this.#guard.save(store, { snapshotId, parentId, isNew }, mutator, completion?.scopes);
    // The id is this turn's own: what is there with the same status is an earlier attempt whose answer got lost.
    if (savedId !== null || (known.isOurs && known.status === input.status)) {
      return { snapshotId: savedId ?? snapshotId };
    }
    if (known.status === 'aborted' || !known.isOurs) return undefined;
    throw failedPrecondition(`Snapshot ${quote(snapshotId)} is ${known.status} already; this turn was not saved.`);
  }

  /**
   * Stores that a turn goes on in the background, before it does: its state so far, the prompt included, and what it takes to run it again.
   *
   * @param parentId The turn before it, which may not be done yet.
   */
  async pend(snapshotId: string, parentId: string | undefined, content: Content<State>): Promise<void> {
    const store = mustHaveStore(this.#agent, 'Detaching');
    await this.#writes.run(snapshotId, async () => {
      this.#pending.add(snapshotId);
      const heartbeatAt = new Date().toISOString();
      const input = this.#input(snapshotId, parentId, { ...content, status: 'pending', heartbeatAt });
      // What is there already is what the turn has ended with in the meantime, or an earlier attempt.
      await this.#guard.save(store, { snapshotId, parentId, isNew: true }, (current) => (current ? null : input));
    });
  }

  /** Tells that a turn in the background is alive. Answers whether it still is to go on: nobody aborted it, took it over or removed it. */
  async beat(snapshotId: string, usage: GenerationUsage | undefined): Promise<boolean> {
    const store = mustHaveStore(this.#agent, 'A heartbeat');
    let isWanted = false;
    await store.saveSnapshot(
      snapshotId,
      (current) => {
        const isHeld = this.holds(current);
        isWanted = current !== undefined && current.status !== 'aborted' && isHeld;
        const now = new Date().toISOString();
        if (current?.status !== 'pending' || !isHeld) return null;
        const run = runOf(current);
        const spent = run && usage && { backgroundRun: { ...run, usage } };
        return { ...current, heartbeatAt: now, updatedAt: now, ...spent };
      },
      { context: this.#context },
    );
    return isWanted;
  }

  /** Leaves a turn in the background to whoever takes its run over, at once. Answers whether it was this call's to leave. */
  letGo(snapshotId: string, usage: GenerationUsage | undefined): Promise<boolean> {
    const store = mustHaveStore(this.#agent, 'Handing a run over');
    return this.#writes.run(snapshotId, async () => {
      const saved = await store.saveSnapshot(
        snapshotId,
        (current) => {
          const run = runOf(current);
          if (current?.status !== 'pending' || !run || !this.holds(current)) return null;
          const left = { ...current, heartbeatAt: LONG_AGO, updatedAt: new Date().toISOString() };
          return { ...left, backgroundRun: { ...run, ...(usage && { usage }), owner: NOBODY } };
        },
        { context: this.#context },
      );
      return saved !== null;
    });
  }

  /**
   * Gives a turn that will not end by itself its end. One that is aborted already gets the state with it, one that is settled stays.
   *
   * @returns Whether the store has it now; `undefined` where the store did not say.
   */
  end(
    snapshotId: string,
    parentId: string | undefined,
    ending: TurnEnding,
    content: TurnContent<State>,
  ): Promise<boolean | undefined> {
    return this.#writes.run(snapshotId, () => this.#end(snapshotId, parentId, ending, content));
  }

  async #end(
    snapshotId: string,
    parentId: string | undefined,
    ending: TurnEnding,
    content: TurnContent<State>,
  ): Promise<boolean | undefined> {
    const store = mustHaveStore(this.#agent, 'Ending a turn');
    const input = this.#input(snapshotId, parentId, { ...ending, ...content });
    const { status } = ending;
    const known: Known = { isOurs: true };
    const isNew = !this.#pending.has(snapshotId);
    const save = (held?: TurnContent<State>) =>
      this.#guard.save(store, { snapshotId, parentId, isNew }, (current) => {
        known.isOurs = this.holds(current);
        known.status = current?.status;
        if (!known.isOurs) return null;
        if (!current) return isNew ? input : null;
        const isOpen = !isTerminal(current.status) || (current.status === 'aborted' && status === 'aborted');
        if (!isOpen) return null;
        const { waitingSince: _before, ...others }: typeof current & Waits = current;
        return { ...(held ? others : current), ...ending, ...held, updatedAt: input.updatedAt };
      });
    try {
      const saved = await save(content).catch((error: unknown) => {
        // A state that the store does not take is not worth a run without an end.
        if (isNew || statusOf(error) !== 'INVALID_ARGUMENT') throw error;
        return save();
      });
      return saved !== null || (known.isOurs && known.status === status);
    } catch (error) {
      logger.error(`Snapshot ${quote(snapshotId)} could not be settled as ${status}. ${describeThrown(error)}`);
      return undefined;
    }
  }

  #input(
    snapshotId: string,
    parentId: string | undefined,
    content: Content<State>,
    before?: readonly MessageData[],
  ): SessionSnapshotInput<State> {
    const now = new Date().toISOString();
    // A turn that ends in the background is the parent of the next, never its own.
    const parent = parentId === undefined || parentId === snapshotId ? undefined : { parentId };
    return {
      snapshotId,
      sessionId: this.#sessionId,
      ...parent,
      createdAt: now,
      updatedAt: now,
      ...ownershipOf(this.#agent),
      ...this.#log(content, before),
      ...content,
    };
  }

  /** The snapshot as a part of the session's event log, which nobody reads of a session that is nobody's. */
  #log(content: Content<State>, before: readonly MessageData[] | undefined): { sessionLog?: SnapshotLog } {
    if (!this.#owner) return {};
    const messages = before && addedTo(before, content.state.messages ?? []);
    return { sessionLog: { owner: this.#owner, author: this.#agent.name, ...(messages && { messages }) } };
  }
}

/** What a mutator saw last. */
interface Known {
  status?: SessionSnapshot['status'];
  isOurs: boolean;
}
