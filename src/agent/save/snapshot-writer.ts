import { setTimeout as pause } from 'node:timers/promises';
import type { ActionContext, GenerationUsage } from 'genkit';
import type {
  MessageData,
  SessionSnapshot,
  SessionSnapshotInput,
  SessionState,
  SessionStore,
  SnapshotMutator,
} from 'genkit/beta';
import { failedPrecondition, logError, quote, SessionConflictError } from '../../errors.ts';
import { addedTo, type SnapshotLog } from '../../session/log/session-log.ts';
import type { Waits } from '../../session/tool-requests.ts';
import type { UsageField } from '../../session/usage.ts';
import { NO_OWNER } from '../../snapshot/lease.ts';
import { isTerminal } from '../../snapshot/status.ts';
import type { SaveSnapshotOptions, ScopeChange, SessionDetails } from '../../store/contract.ts';
import { KeyQueue } from '../../store/parts/key-queue.ts';
import { mustHaveStore, type AgentDefinition } from '../agent-definition.ts';
import { healthySnapshotOf } from '../open/damaged-session.ts';
import { assertNotRunning, findLastCompleted, type OpenedSession } from '../open/open-session.ts';
import { readMetadata } from '../open/read-snapshot.ts';
import { statusOf } from '../runtime-error.ts';
import { isTransient } from './store-calls.ts';
import { runOf, type RunLease, type RunRecord } from '../run-lease.ts';
import type { TurnEnding } from '../turn-ending.ts';
import { ownershipOf } from '../open/visible-snapshot.ts';

/** A turn's part of a snapshot. */
export interface TurnContent<State> extends Waits {
  readonly state: SessionState<State>;
}

/** The fields of a snapshot other than its position in the session. */
export type Content<State> = Pick<SessionSnapshotInput<State>, 'status' | 'finishReason' | 'error' | 'heartbeatAt'> &
  TurnContent<State> &
  UsageField & { backgroundRun?: RunRecord };

/** The first pause before a background turn tries its save again, in ms. Each further pause is twice as long. */
const FIRST_PAUSE_MS = 500;

/** The heartbeat of a released run: older than any lease. */
const EXPIRED_HEARTBEAT = new Date(0).toISOString();

/** Additional data of a completed turn. */
export interface Completion {
  /** The messages at the beginning of the turn. */
  readonly before: readonly MessageData[] | undefined;
  /** The turn's changes to shared scopes. They are applied when the turn is saved, and not otherwise. */
  readonly scopes: readonly ScopeChange[];
}

interface Saved {
  readonly snapshotId: string;
}

/** The position of a snapshot in its session. */
interface Place {
  snapshotId: string;
  parentId: string | undefined;
  /** The store does not have it yet, except from an earlier attempt of the same save. */
  isNew: boolean;
}

/**
 * Writes the snapshots of one call of an agent. It does not touch a snapshot that another process ended, removed, or took over. A new
 * snapshot is saved only if the session still has the leaf that the call knows; otherwise it would hide snapshots that other calls saved.
 * It is saved only if its parent still exists; otherwise it would restore a part of a deleted session.
 */
export class SnapshotWriter<State> {
  readonly #agent: AgentDefinition<State>;
  readonly #opened: OpenedSession<State>;
  readonly #sessionId: string;
  readonly #context: ActionContext | undefined;
  /** The details of the session. Empty for a store that does not keep them. */
  readonly #details: { session?: SessionDetails };
  /** The leaf when the call opened the session, then the snapshot that it saved last; `undefined`: no check. */
  #expectedLeafId: string | null | undefined;
  /** A leaf that can't be read; the session continues from an earlier snapshot. */
  #damagedLeafId: string | null | undefined;
  /** Background turns that are stored as pending, unless they were removed. */
  readonly #pending = new Set<string>();
  /** Serializes the writes of one snapshot: a turn may end while it is being stored as pending. */
  readonly #writes = new KeyQueue();
  #lease: RunLease | undefined;
  /** Aborted when the run is handed over. Made on first use. */
  #leaving: AbortController | undefined;

  constructor(agent: AgentDefinition<State>, opened: OpenedSession<State>) {
    const { session, caller, owner, expectedLeafId } = opened;
    this.#agent = agent;
    this.#opened = opened;
    this.#sessionId = session.sessionId;
    this.#context = caller.context;
    this.#expectedLeafId = expectedLeafId;
    const ownerId = owner && { ownerId: owner.userId };
    this.#details = agent.can.details ? { session: { ...ownerId, agent: agent.name } } : {};
  }

  get #store(): SessionStore<State> {
    return mustHaveStore(this.#agent, 'Saving a turn');
  }

  /**
   * Continues the call in the background, under this lease.
   *
   * @param snapshotIds Its turns that are already stored as pending.
   */
  runAs(lease: RunLease, snapshotIds: readonly string[] = []): void {
    this.#lease = lease;
    for (const snapshotId of snapshotIds) this.#pending.add(snapshotId);
  }

  /** True once the caller of these turns has detached. */
  get isInBackground(): boolean {
    return this.#lease !== undefined;
  }

  /** The owner of the run, which its snapshots name; `undefined` while the caller waits. */
  get owner(): string | undefined {
    return this.#lease?.owner;
  }

  /** True once another process has taken over the run. */
  get isLost(): boolean {
    return this.#lease?.isLost === true;
  }

  /** Whether this call may still write a snapshot. */
  holds(snapshot: SessionSnapshot | undefined): boolean {
    return this.#lease?.holds(snapshot) ?? true;
  }

  /** Whether the store may hold a turn as pending. */
  mayBePending(snapshotId: string): boolean {
    return this.#pending.has(snapshotId);
  }

  /**
   * Saves the end of a turn. Returns the id under which the store saved it; `undefined` when the snapshot was aborted, removed, or taken over
   * in the meantime.
   */
  save(
    snapshotId: string,
    parentId: string | undefined,
    content: Content<State>,
    completion?: Completion,
  ): Promise<Saved | undefined> {
    return this.#writes.run(snapshotId, async () => {
      const isNew = !this.#pending.has(snapshotId);
      const run = isNew || !this.#lease ? undefined : { backgroundRun: this.#lease.terminalRecord };
      const input = this.#input(snapshotId, parentId, { ...content, ...run }, completion?.before);
      const known: Known = { isOurs: true };
      const mutator: SnapshotMutator<State> = (current) => {
        known.isOurs = this.holds(current);
        known.status = current ? current.status : isNew ? undefined : 'aborted';
        return isTerminal(known.status) || !known.isOurs ? null : input;
      };
      const write = () => this.#write({ snapshotId, parentId, isNew }, mutator, completion?.scopes);
      const savedId = run ? await this.#whileLeased(write) : await write();
      // The id belongs to this turn alone: a snapshot with the same status is an earlier attempt whose response was lost.
      if (savedId !== null || (known.isOurs && known.status === input.status)) {
        return { snapshotId: savedId ?? snapshotId };
      }
      if (known.status === 'aborted' || !known.isOurs) return undefined;
      throw failedPrecondition(`Snapshot ${quote(snapshotId)} is already ${known.status}; this turn was not saved.`);
    });
  }

  /**
   * Stores a turn as pending before it continues in the background: its state so far, with the prompt, and the data needed to run it again.
   *
   * @param parentId The turn before it, which may still be running.
   */
  async savePending(snapshotId: string, parentId: string | undefined, content: Content<State>): Promise<void> {
    await this.#writes.run(snapshotId, async () => {
      this.#pending.add(snapshotId);
      const heartbeatAt = new Date().toISOString();
      const input = this.#input(snapshotId, parentId, { ...content, status: 'pending', heartbeatAt });
      // An existing snapshot is the end that the turn has reached in the meantime, or an earlier attempt.
      await this.#write({ snapshotId, parentId, isNew: true }, (current) => (current ? null : input));
    });
  }

  /** Writes the heartbeat of a background turn. Returns whether it must continue: false when it was aborted, taken over or removed. */
  async renewLease(snapshotId: string, usage: GenerationUsage | undefined): Promise<boolean> {
    let mustContinue = false;
    await this.#store.saveSnapshot(
      snapshotId,
      (current) => {
        const isHeld = this.holds(current);
        mustContinue = current !== undefined && current.status !== 'aborted' && isHeld;
        const now = new Date().toISOString();
        if (current?.status !== 'pending' || !isHeld) return null;
        const run = runOf(current);
        const spent = run && usage && { backgroundRun: { ...run, usage } };
        return { ...current, heartbeatAt: now, updatedAt: now, ...spent };
      },
      { context: this.#context },
    );
    return mustContinue;
  }

  /** Releases a background turn, so that another process can take it over at once. Returns whether this call still owned it. */
  release(snapshotId: string, usage: GenerationUsage | undefined): Promise<boolean> {
    this.#leaving ??= new AbortController();
    this.#leaving.abort();
    return this.#writes.run(snapshotId, async () => {
      const saved = await this.#store.saveSnapshot(
        snapshotId,
        (current) => {
          const run = runOf(current);
          if (current?.status !== 'pending' || !run || !this.holds(current)) return null;
          const expired = { ...current, heartbeatAt: EXPIRED_HEARTBEAT, updatedAt: new Date().toISOString() };
          return { ...expired, backgroundRun: { ...run, ...(usage && { usage }), owner: NO_OWNER } };
        },
        { context: this.#context },
      );
      return saved !== null;
    });
  }

  /**
   * Ends a turn that will not end by itself. A snapshot that is already aborted also gets the state; any other terminal snapshot is not changed.
   *
   * @returns Whether the store holds it now; `undefined` when the store call failed.
   */
  end(
    snapshotId: string,
    parentId: string | undefined,
    ending: TurnEnding,
    content: TurnContent<State>,
  ): Promise<boolean | undefined> {
    return this.#writes.run(snapshotId, async () => {
      const input = this.#input(snapshotId, parentId, { ...ending, ...content });
      const { status } = ending;
      const known: Known = { isOurs: true };
      const isNew = !this.#pending.has(snapshotId);
      const save = (held?: TurnContent<State>) =>
        this.#write({ snapshotId, parentId, isNew }, (current) => {
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
          // The store refuses the state, so the end is saved without it.
          if (isNew || statusOf(error) !== 'INVALID_ARGUMENT') throw error;
          return save();
        });
        return saved !== null || (known.isOurs && known.status === status);
      } catch (error) {
        logError(`Snapshot ${quote(snapshotId)} could not be saved as ${status}.`, error);
        return undefined;
      }
    });
  }

  /**
   * Tries a save of a background turn again until its lease would be over: no caller waits for the turn, and without its end the turn would run again.
   */
  async #whileLeased<T>(save: () => Promise<T>): Promise<T> {
    const { leaseMs, heartbeatIntervalMs } = this.#agent.background;
    const end = performance.now() + leaseMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      try {
        return await save();
      } catch (error) {
        const waitMs = Math.min(pauseMs, heartbeatIntervalMs);
        this.#leaving ??= new AbortController();
        const { signal } = this.#leaving;
        if (!isTransient(error) || signal.aborted || performance.now() + waitMs > end) throw error;
        await pause(waitMs, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** @throws `SessionConflictError` when another turn came first, and the store's errors. */
  async #write(
    { snapshotId, parentId, isNew }: Place,
    mutator: SnapshotMutator<State>,
    scopes: readonly ScopeChange[] = [],
  ): Promise<string | null> {
    for (;;) {
      const checksLeaf = isNew && this.#expectedLeafId !== undefined;
      try {
        // The leaf may be this snapshot itself, from an earlier write of the same turn.
        const isExempt = this.#expectedLeafId === snapshotId || this.#expectedLeafId === this.#damagedLeafId;
        if (checksLeaf && !isExempt) await this.#assertNoNewTurn(parentId);
        const options: SaveSnapshotOptions = {
          context: this.#context,
          ...(isNew && this.#details),
          ...(checksLeaf && { expectedLeafId: this.#expectedLeafId }),
          ...this.#fences({ parentId, isNew }, scopes),
        };
        const saved = await this.#store.saveSnapshot(snapshotId, mutator, options);
        if (checksLeaf) this.#expectedLeafId = snapshotId;
        return saved;
      } catch (error) {
        if (!SessionConflictError.isInstance(error) || !(await this.#isStillLast(parentId, error))) throw error;
      }
    }
  }

  /** The save's changes of records, and its conditions: it must not restore data that was deleted or erased while the turn ran. */
  #fences(
    { parentId, isNew }: Omit<Place, 'snapshotId'>,
    scopes: readonly ScopeChange[],
  ): Pick<SaveSnapshotOptions, 'ifSnapshot' | 'scopes'> {
    const { erasureFence, isNew: isNewSession, parentId: openedFrom } = this.#opened;
    // A new session may continue from a snapshot without a session, which `ifSnapshot` would not find.
    const isOutside = isNewSession === true && parentId === openedFrom;
    const parent = isNew && this.#agent.can.compareLeaf && !isOutside ? parentId : undefined;
    const isFenced = (isNew && parent === undefined) || scopes.length > 0;
    const all = [...scopes, ...(isFenced && erasureFence ? [erasureFence] : [])];
    return { ...(parent !== undefined && { ifSnapshot: parent }), ...(all.length > 0 && { scopes: all }) };
  }

  /** Refuses a leaf that has completed or is running since the call began, for example an expired run that was taken over. */
  async #assertNoNewTurn(parentId: string | undefined): Promise<void> {
    const leafId = this.#expectedLeafId;
    if (typeof leafId !== 'string' || leafId === parentId) return;
    const leaf = await readMetadata(this.#agent, { snapshotId: leafId, context: this.#context });
    if (leaf) assertNotRunning(this.#agent, leaf);
    if (leaf?.status !== 'completed') return;
    throw new SessionConflictError({
      sessionId: this.#sessionId,
      expectedLeafId: parentId ?? null,
      actualLeafId: leafId,
    });
  }

  /** Whether the turns that came first did not complete, so that the session still continues from `parentId`. */
  async #isStillLast(parentId: string | undefined, { actualLeafId }: SessionConflictError): Promise<boolean> {
    let found: Awaited<ReturnType<typeof findLastCompleted<State>>>;
    try {
      found = await findLastCompleted(this.#agent, this.#sessionId, this.#context);
    } catch (error) {
      const isBeforeDamage = parentId !== undefined && healthySnapshotOf(error) === parentId;
      if (!isBeforeDamage || actualLeafId === this.#damagedLeafId) throw error;
      this.#expectedLeafId = this.#damagedLeafId = actualLeafId;
      return true;
    }
    const { leaf, snapshot } = found;
    const isRunning = leaf?.status === 'pending';
    const isNew = leaf !== undefined && leaf.snapshotId !== this.#expectedLeafId;
    if (isRunning || !isNew || snapshot?.snapshotId !== parentId) return false;
    this.#expectedLeafId = leaf.snapshotId;
    return true;
  }

  #input(
    snapshotId: string,
    parentId: string | undefined,
    content: Content<State>,
    before?: readonly MessageData[],
  ): SessionSnapshotInput<State> {
    const now = new Date().toISOString();
    // A background turn that ends is the parent of the next turn, never of itself.
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

  /** The snapshot's part of the session's event log, which is needed only for a session that has an owner. */
  #log(content: Content<State>, before: readonly MessageData[] | undefined): { sessionLog?: SnapshotLog } {
    const { owner } = this.#opened;
    if (!owner) return {};
    const messages = before && addedTo(before, content.state.messages ?? []);
    return { sessionLog: { owner, author: this.#agent.name, ...(messages && { messages }) } };
  }
}

/** The snapshot that a mutator saw last. */
interface Known {
  status?: SessionSnapshot['status'];
  isOurs: boolean;
}
