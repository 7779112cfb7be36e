import type { ClaimRequest, JobsRequest, ListEntry } from '../../../src/store/memory/base-memory-store.ts';
import type { MemoryJob, MemoryJobChange, MemoryJobHold } from '../../../src/store/memory/contract.ts';
import {
  assertMemoryJobHeld,
  changeMemoryJob,
  jobToClaim,
  leaseMemoryJob,
  memoryJobDueAt,
} from '../../../src/store/memory/jobs.ts';
import { memoryScopeKey } from '../../../src/store/memory/scope.ts';

interface Entry {
  job: MemoryJob;
  readonly number: number;
  readonly scope: string;
}

/** The jobs of one tenant, oldest first. */
export class JobQueue {
  readonly #jobs = new Map<string, Entry>();
  #added = 0;

  add(job: MemoryJob, maxJobs: number): 'added' | 'known' | 'full' {
    if (this.#jobs.has(job.id)) return 'known';
    const alive = [...this.#jobs.values()].filter((entry) => entry.job.state !== 'dead');
    if (alive.length >= maxJobs) return 'full';
    this.#jobs.set(job.id, { job, number: ++this.#added, scope: memoryScopeKey(job.scope) });
    return 'added';
  }

  claim({ scope, ...claim }: ClaimRequest): MemoryJob | undefined {
    const jobs = [...this.#jobs.values()].map((entry) => ({ ...entry, dueAt: memoryJobDueAt(entry.job) }));
    const job = jobToClaim(jobs, scope, claim.now)?.job;
    if (!job) return undefined;
    const held = leaseMemoryJob(job, claim);
    this.#jobs.get(job.id)!.job = held;
    return held;
  }

  change(id: string, change: MemoryJobChange, now: number): void {
    const entry = this.#jobs.get(id);
    const next = changeMemoryJob(entry?.job, id, change, now);
    if (next) entry!.job = next;
    else this.#jobs.delete(id);
  }

  assertHeld(hold: MemoryJobHold, scope: string): void {
    assertMemoryJobHeld(this.#jobs.get(hold.id)?.job, hold, scope);
  }

  remove(id: string): void {
    this.#jobs.delete(id);
  }

  list({ state, scope, limit, after = '0' }: JobsRequest): ListEntry<MemoryJob>[] {
    const rest = [...this.#jobs.values()].filter(
      (entry) =>
        entry.number > Number(after) &&
        (state ?? entry.job.state) === entry.job.state &&
        (scope ?? entry.scope) === entry.scope,
    );
    return rest.slice(0, limit).map(({ job, number }) => ({ item: job, place: `${number}` }));
  }

  scopes(): Set<string> {
    return new Set([...this.#jobs.values()].map(({ scope }) => scope));
  }

  removeScope(scope: string): number {
    const ids = [...this.#jobs].filter(([, entry]) => entry.scope === scope).map(([id]) => id);
    for (const id of ids) this.#jobs.delete(id);
    return ids.length;
  }
}
