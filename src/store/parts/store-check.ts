import { isUnreadable } from '../../errors.ts';
import { isLeaseOver, runStateOf } from '../../snapshot/lease.ts';
import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { CheckCounts, CheckOptions, CheckResult, StoreFinding } from '../contract.ts';

/** A finding before it has a tenant and advice. */
export type Found = Omit<StoreFinding, 'tenant' | 'advice' | 'isRepaired'> & { readonly advice?: string };

const DEFAULT_GRACE_MS = 3_600_000;

const ADVICE: Readonly<Record<StoreFinding['kind'], string>> = {
  damaged: 'Restore it from a backup, or delete what it belongs to.',
  unreadable: 'Open the store with the key, or with the version of this package, that wrote it.',
  orphan: 'Nothing needs it. check with repair removes it, and so does prune.',
  expired: 'prune removes it.',
};

/** A running check of a tenant. The store counts the data that it reads, and reports its findings. */
export class StoreCheck {
  readonly #tenant: string;
  readonly #repair: boolean;
  readonly #graceMs: number;
  readonly #onProgress: CheckOptions['onProgress'];
  readonly #counts: CheckCounts = { sessions: 0, snapshots: 0, records: 0, scopes: 0 };
  readonly #findings: StoreFinding[] = [];

  constructor(tenant: string, { repair = false, graceMs = DEFAULT_GRACE_MS, onProgress }: CheckOptions) {
    this.#tenant = tenant;
    this.#repair = repair;
    this.#graceMs = graceMs;
    this.#onProgress = onProgress;
  }

  get result(): CheckResult {
    return { ...this.#counts, findings: this.#findings };
  }

  /** Counts data that was read. */
  count(what: keyof CheckCounts, number = 1): void {
    this.#counts[what] += number;
    if (what === 'sessions') this.#onProgress?.({ ...this.#counts });
  }

  /** Reports a background run that no process works on: its lease has expired, or it was handed over. */
  reportRun(snapshot: SnapshotMetadata, found: Omit<Found, 'kind' | 'problem'>): void {
    if (!isLeaseOver(snapshot)) return;
    const { snapshotId, heartbeatAt } = snapshot;
    const since = heartbeatAt === undefined ? '' : `, with no sign of life since ${heartbeatAt}`;
    const problem =
      runStateOf(snapshot) === 'released'
        ? 'a background run that was handed over, and that no process has taken'
        : `a background run whose lease has run out${since}`;
    const advice = 'recoverRuns takes it over, as does `runs recover` of the command line; or abort it.';
    this.report({ ...found, snapshotId, kind: 'expired', problem, advice });
  }

  /** Whether to remove an orphan that was written at this time, in ms. */
  mayRepair(writtenMs: number, nowMs = Date.now()): boolean {
    return this.#repair && nowMs - writtenMs > this.#graceMs;
  }

  report({ advice, ...found }: Found, isRepaired = false): void {
    this.#findings.push({ ...found, tenant: this.#tenant, advice: advice ?? ADVICE[found.kind], isRepaired });
  }

  /** Reports data that can't be read. Throws errors that have another reason. */
  reportError(error: unknown, found: Omit<Found, 'kind' | 'problem'>): void {
    if (!isUnreadable(error)) throw error;
    const kind = error.status === 'DATA_LOSS' ? 'damaged' : 'unreadable';
    this.report({ ...found, kind, problem: error.originalMessage });
  }
}
