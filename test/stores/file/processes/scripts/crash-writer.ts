import type { SessionSnapshot, SessionSnapshotInput } from '../../../../../src/store/contract.ts';
import { reserveSnapshotId } from '../../../../../src/snapshot/ids.ts';
import { FileSessionStore } from '../../../../../stores/file/file-session-store.ts';
import { mortalFileSystem, type DeathPlan } from '../support/mortal-file-system.ts';
import { outcomeOf, type Outcome } from '../support/outcome.ts';
import { Random } from '../../../../support/random.ts';
import { fingerprint, turn } from '../support/snapshots.ts';
import { FAST, type StoreSpec } from '../support/stores.ts';

/** Options of a writer. */
export interface WriterPlan {
  readonly store: StoreSpec;
  readonly sessions: readonly string[];
  readonly seed: number;
  /** None: the parent kills it. */
  readonly death?: DeathPlan;
  /** The number of saves after which the writer waits at the gate. Default: it never waits. */
  readonly batch?: number;
}

/** The reports of a writer: before a save can be on the disk, and its outcome. */
export type Report =
  | {
      readonly kind: 'intent';
      readonly id: string;
      readonly sessionId: string;
      readonly parentId?: string;
      readonly print: string;
    }
  | { readonly kind: 'saved' | 'refused' | 'kept'; readonly id: string }
  | { readonly kind: 'resting' };

/** Receives the reports of a writer, and makes it wait. */
export interface Parent {
  readonly report: (line: string) => void;
  readonly waitAtGate: () => void;
}

/** Reports the next save. */
export function intentOf(id: string, input: SessionSnapshotInput): Report {
  const { sessionId, parentId } = input as { sessionId: string; parentId?: string };
  const print = fingerprint({ ...input, snapshotId: id });
  return { kind: 'intent', id, sessionId, ...(parentId !== undefined && { parentId }), print };
}

/** Plays turns and rewrites snapshots of its own until the process is killed. */
export class CrashWriter {
  readonly #plan: WriterPlan;
  readonly #parent: Parent;
  readonly #store: FileSessionStore;
  readonly #random: Random;
  readonly #own: string[] = [];

  constructor(plan: WriterPlan, parent: Parent) {
    const { folder, options } = plan.store;
    this.#plan = plan;
    this.#parent = parent;
    this.#store = new FileSessionStore(folder, { ...FAST, ...options }, plan.death && mortalFileSystem(plan.death));
    this.#random = new Random(plan.seed);
  }

  async run(): Promise<never> {
    for (let n = 0, saved = 0; ; n++) {
      const isRewrite = this.#own.length > 0 && this.#random.next() < 0.25;
      const id = isRewrite ? this.#random.pick(this.#own.slice(-10)) : reserveSnapshotId();
      const outcome = await (isRewrite ? this.#rewrite(id, n) : this.#playTurn(id, n));
      // The state of a completed snapshot that has children stays.
      if (isRewrite && outcome.kind === 'refused' && outcome.status === 'FAILED_PRECONDITION') {
        this.#tell({ kind: 'kept', id });
        continue;
      }
      if (outcome.kind === 'refused') throw new Error(`a save was refused: ${outcome.status} ${outcome.message}`);
      if (outcome.kind === 'conflict') this.#tell({ kind: 'refused', id });
      // A rewrite is skipped when the snapshot was pruned.
      if (outcome.kind === 'conflict' || outcome.id === null) continue;
      this.#tell({ kind: 'saved', id });
      if (!isRewrite) this.#own.push(id);
      if (++saved % (this.#plan.batch ?? Infinity) !== 0) continue;
      this.#tell({ kind: 'resting' });
      this.#parent.waitAtGate();
    }
  }

  async #playTurn(id: string, n: number): Promise<Outcome> {
    const sessionId = this.#random.pick(this.#plan.sessions);
    const parent = await this.#store.getSnapshot({ sessionId });
    const input = turn(sessionId, parent, textOf(n, this.#random));
    const options = { expectedLeafId: parent?.snapshotId ?? null };
    return outcomeOf(this.#store.saveSnapshot(id, () => this.#announced(id, input), options));
  }

  #rewrite(id: string, n: number): Promise<Outcome> {
    return outcomeOf(
      this.#store.saveSnapshot(id, (current) =>
        current ? this.#announced(id, rewritten(current, n, this.#random)) : null,
      ),
    );
  }

  #announced(id: string, input: SessionSnapshotInput): SessionSnapshotInput {
    this.#tell(intentOf(id, input));
    return input;
  }

  #tell(report: Report): void {
    this.#parent.report(JSON.stringify(report));
  }
}

/** Mostly short, sometimes long enough for a shard. */
function textOf(n: number, random: Random): string {
  const words = random.next() < 0.05 ? 4000 : random.below(40);
  return `${n}: ${Array.from({ length: words }, () => random.below(1e6).toString(36)).join(' ')}`;
}

/** Half of the time with another state. */
function rewritten(current: SessionSnapshot, n: number, random: Random): SessionSnapshotInput {
  const updatedAt = new Date(Date.UTC(2026, 0, 3) + n).toISOString();
  if (random.next() < 0.5) return { ...current, updatedAt };
  return { ...current, updatedAt, state: { ...current.state, custom: { rewrittenAt: n, noise: random.below(1e9) } } };
}
