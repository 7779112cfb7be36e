import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { GenkitError } from 'genkit';
import { isAborted, logWarning, unavailable } from '../../../errors.ts';
import { beginning } from '../../../session/log/transcript.ts';
import type { MemoryJob, MemoryScopeId, MemoryStoreOptions } from '../../../store/memory/contract.ts';
import { LONGEST_TIMER_MS } from '../../../store/check-options.ts';
import { KeyQueue } from '../../../store/parts/key-queue.ts';
import { LruCache } from '../../../store/parts/lru-cache.ts';
import { runWithoutContext } from '../../run-without-context.ts';
import { memoryScope, targetOf, tenantKeyOf, type MemoryScope, type ScopeTarget } from '../../scopes.ts';
import { JobRun } from '../commit/run-job.ts';
import type { Pipeline } from '../pipeline.ts';
import { listAllJobs } from '../records/list-all.ts';
import { noteDeadJob } from './note-dead-job.ts';

/** The result of an attempt. `lost`: the job was removed, or another worker took it because the lease had expired. */
export type Attempt = 'done' | 'failed' | 'dead' | 'lost';

/**
 * How jobs ended, for a caller that waits. `queued`: they are behind another job, which waits for its next attempt. `refused`: at least one
 * job was dropped and stored nothing.
 */
export type WorkedOff = 'done' | 'failed' | 'queued' | 'refused';

/** The most jobs of a tenant that a process runs at once. Each scope has only one running job. */
const MOST_AT_ONCE = 4;
/** How often a lease is renewed within `leaseMs`. */
const RENEWALS = 3;
const MAX_ERROR = 300;
const LOST =
  'Each process that took the job ended or lost its lease before the job was done. Look for crashes, increase limits.leaseMs, then replay the job.';
/** The number of jobs that a worker reads to check whether all are dead. */
const MOST_DEAD = 5;
/** The most dropped jobs that a worker remembers for callers that wait. */
const MOST_DROPPED = 1_000;
/** The interval at which a caller checks a job of another process for which it waits, in ms. */
const LOOK_AGAIN_MS = 50;

/** The background work of this process for a tenant. */
interface TenantWork {
  readonly options: MemoryStoreOptions;
  loops: number;
  /** Whether `wake` was called and no loop has handled it yet. */
  isWanted: boolean;
  /** The timer that calls `wake`, and its time. */
  nextWake?: { readonly at: number; readonly timer: NodeJS.Timeout };
}

/** Takes jobs under a lease and runs them. Gives them back after a failure and when it is closed. */
export class MemoryWorker {
  readonly #pipeline: Pipeline;
  readonly #owner = randomUUID();
  readonly #tenants = new Map<string, TenantWork>();
  /** The running work, with the tenant whose jobs it runs. */
  readonly #running = new Map<Promise<unknown>, string | undefined>();
  /** Aborts the run of a job, by its id. */
  readonly #runs = new Map<string, AbortController>();
  /** The ids of jobs that were dropped. */
  readonly #dropped = new LruCache<true>(MOST_DROPPED);
  readonly #callers = new KeyQueue();
  readonly #closing = new AbortController();

  constructor(pipeline: Pipeline) {
    this.#pipeline = pipeline;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Runs the jobs of a tenant in the background until no job is due. Does nothing with `worker: false`. */
  wake(options: MemoryStoreOptions): void {
    if (!this.#pipeline.worker || this.isClosed) return;
    const tenant = this.#pipeline.store.tenant(options);
    const work = this.#workOf(tenant, options);
    work.isWanted = true;
    if (work.loops >= MOST_AT_ONCE) return;
    work.loops++;
    void this.track(
      runWithoutContext(() => this.#loop(tenant, work)),
      tenant,
    );
  }

  /** Makes one attempt at one job; returns `undefined` if no job is due. */
  async attempt(options: MemoryStoreOptions): Promise<{ attempt: Attempt; job: MemoryJob } | undefined> {
    if (this.isClosed) return undefined;
    return this.track(this.#attempt(options), this.#pipeline.store.tenant(options));
  }

  #attempt(
    options: MemoryStoreOptions,
    scope?: MemoryScopeId,
  ): Promise<{ attempt: Attempt; job: MemoryJob } | undefined> {
    const { store, limits, now } = this.#pipeline;
    const claim = { ...options, owner: this.#owner, leaseMs: limits.leaseMs, now: now() };
    return runWithoutContext(async () => {
      const job = await store.claimJob({ ...claim, scope });
      return job && { attempt: await this.#carryOut(job, options), job };
    });
  }

  /** Runs jobs of a scope until these jobs are done, one of them failed, or the first job of the scope waits for its next attempt. */
  async workOff(scope: MemoryScope, jobIds: readonly string[]): Promise<WorkedOff> {
    // The jobs of a scope run one after the other, so parallel callers take turns; otherwise they would only add reads.
    const key = tenantKeyOf(this.#pipeline.store, scope);
    const target = targetOf(scope);
    const end = await this.#callers
      .run(key, () => this.#workOff(target, jobIds))
      .catch((error: unknown) => {
        this.#wakeAfterLease(target.options);
        throw error;
      });
    return jobIds.some((id) => this.#dropped.get(id)) ? 'refused' : end;
  }

  async #workOff({ id: scope, options }: ScopeTarget, jobIds: readonly string[]): Promise<WorkedOff> {
    const open = new Set(jobIds);
    const tenant = this.#pipeline.store.tenant(options);
    let failed = false;
    const attempt = async () => {
      const made = await this.#attempt(options, scope);
      if (made && made.attempt !== 'lost' && open.delete(made.job.id)) failed ||= made.attempt !== 'done';
      // The background worker may have found the scope busy, and planned to check later.
      if (open.size === 0 && this.#tenants.has(tenant)) this.wake(options);
      return made;
    };
    while (open.size > 0 && !this.isClosed) {
      if (await this.track(attempt(), tenant)) continue;
      const jobs = await listAllJobs(this.#pipeline, { ...options, scope });
      for (const id of open) {
        const state = jobs.find((job) => job.id === id)?.state;
        if (state === 'dead') return 'failed';
        if (state === undefined) open.delete(id);
      }
      if (open.size === 0) break;
      // The jobs of a scope run one after the other, so a job that waits for a later attempt blocks the jobs behind it.
      const first = jobs.find(({ state }) => state !== 'dead')!;
      if (first.state === 'waiting' && Date.parse(first.dueAt) > this.#pipeline.now())
        return failed || open.has(first.id) ? 'failed' : 'queued';
      await pause(LOOK_AGAIN_MS);
    }
    return failed || open.size > 0 ? 'failed' : 'done';
  }

  /**
   * Removes a job, even while this process works on it. Waits while a worker of another process holds it.
   *
   * @throws `UNAVAILABLE` if the other worker holds the job for longer than two leases.
   */
  async remove({ id }: MemoryJob, options: MemoryStoreOptions): Promise<void> {
    const { store, now, limits } = this.#pipeline;
    for (const deadline = now() + 2 * limits.leaseMs; ;) {
      this.#dropped.set(id, true, 1);
      const running = this.#runs.get(id);
      running?.abort(new GenkitError({ status: 'CANCELLED', message: 'The memory job was removed.' }));
      try {
        return await store.changeJob(id, { ...options, owner: running && this.#owner, to: 'remove', now: now() });
      } catch (error) {
        const { status } = (error ?? {}) as { status?: unknown };
        if (status === 'NOT_FOUND') return;
        if (status !== 'ABORTED') throw error;
      }
      if (now() > deadline)
        throw unavailable('A worker of another process still reads the source. Try again in a moment.');
      await pause(LOOK_AGAIN_MS);
    }
  }

  /** Resolves when no work is running. With `options`, waits only for the work on that tenant's jobs. */
  async settled(options?: MemoryStoreOptions): Promise<void> {
    const tenant = options && this.#pipeline.store.tenant(options);
    for (;;) {
      const running = [...this.#running].flatMap(([work, of]) => (tenant === undefined || of === tenant ? [work] : []));
      if (running.length === 0) return;
      await Promise.allSettled(running);
    }
  }

  /** Interrupts the running jobs, gives them back, and waits for all other work. The interrupted attempts do not count. */
  async close(): Promise<void> {
    this.#closing.abort(new GenkitError({ status: 'CANCELLED', message: 'The memory manager was closed.' }));
    for (const { nextWake } of this.#tenants.values()) clearTimeout(nextWake?.timer);
    await this.settled();
  }

  /**
   * Makes {@link MemoryWorker.settled} and `close` wait for the work.
   *
   * @param tenant The tenant whose jobs the work runs. Default: it runs no jobs.
   */
  track<T>(work: Promise<T>, tenant?: string): Promise<T> {
    this.#running.set(work, tenant);
    const end = () => this.#running.delete(work);
    work.then(end, end);
    return work;
  }

  async #loop(tenant: string, work: TenantWork): Promise<void> {
    try {
      while (work.isWanted && !this.isClosed) {
        work.isWanted = false;
        while (await this.attempt(work.options));
      }
      if (work.loops === 1) await this.#lookLater(work.options);
    } catch (error) {
      logWarning('The memory jobs of a tenant could not be read. They are read again after limits.leaseMs.', error);
      this.#wakeAfterLease(work.options);
    } finally {
      work.loops--;
      if (work.loops === 0 && !work.nextWake) this.#tenants.delete(tenant);
    }
  }

  /**
   * Wakes up later if there are jobs that can't be taken now: jobs of workers that died, jobs behind these, and jobs that wait for their
   * next attempt. If the first page has only dead jobs, the next page may have such jobs.
   */
  async #lookLater(options: MemoryStoreOptions): Promise<void> {
    const { store, limits, now } = this.#pipeline;
    const { items, nextCursor } = await store.listJobs({ ...options, limit: MOST_DEAD });
    const isOpen = nextCursor !== undefined || items.some(({ state }) => state !== 'dead');
    const dues = items.flatMap(({ state, dueAt }) => (state === 'waiting' ? Date.parse(dueAt) : []));
    // A job that is due already is behind another job.
    const later = dues.filter((due) => due > now());
    if (isOpen) this.#wakeAt(Math.min(now() + limits.leaseMs, ...later), options);
  }

  async #carryOut(job: MemoryJob, options: MemoryStoreOptions): Promise<Attempt> {
    const { limits, store, now } = this.#pipeline;
    // The worker of the last attempt died or lost its lease.
    if (job.attempts > limits.maxAttempts) return this.#fail(job, options, new Error(LOST));
    const lost = new AbortController();
    this.#dropped.delete(job.id);
    this.#runs.set(job.id, lost);
    const renewal = setInterval(() => {
      const change = { ...options, owner: this.#owner, to: 'renew' as const, leaseMs: limits.leaseMs, now: now() };
      store.changeJob(job.id, change).catch((error: unknown) => {
        if (isAborted(error)) lost.abort(error);
      });
    }, limits.leaseMs / RENEWALS);
    renewal.unref();
    const signal = AbortSignal.any([lost.signal, this.#closing.signal]);
    try {
      const outcome = await new JobRun(this.#pipeline, job, { owner: this.#owner, signal, options }).run();
      if (outcome === 'dropped') this.#dropped.set(job.id, true, 1);
      return 'done';
    } catch (error) {
      if (this.isClosed) {
        // The interrupted attempt does not count.
        await this.#change(job, options, { to: 'waiting', attempts: Math.max(0, job.attempts - 1) });
        return 'failed';
      }
      return lost.signal.aborted ? 'lost' : await this.#fail(job, options, error);
    } finally {
      this.#runs.delete(job.id);
      clearInterval(renewal);
    }
  }

  async #fail(job: MemoryJob, options: MemoryStoreOptions, error: unknown): Promise<Attempt> {
    const { limits, now, random, report } = this.#pipeline;
    const isLast = job.attempts >= limits.maxAttempts;
    const text =
      error instanceof Error
        ? beginning(error.message, MAX_ERROR)
        : 'A function of the application threw a value that is not an Error.';
    const wait = Math.min(limits.backOffMs * 2 ** (job.attempts - 1), limits.maxBackOffMs) * (0.5 + random());
    const due = now() + wait;
    if (isLast) {
      await noteDeadJob(this.#pipeline, job, this.#owner, options).catch((fault: unknown) => {
        // The job was removed, or another worker holds it.
        if (isAborted(fault)) return;
        logWarning('The messages of a dead memory job could not be noted, so later jobs may read them too.', fault);
      });
    }
    const change = isLast ? { to: 'dead' as const } : { to: 'waiting' as const, dueAt: new Date(due).toISOString() };
    const unchanged = await this.#change(job, options, { ...change, error: text });
    if (unchanged) return unchanged;
    if (!isLast) this.#wakeAt(due, options);
    const scope = memoryScope(job.scope, options.context);
    const { id: jobId, sourceId, attempts } = job;
    const type = isLast ? 'dead' : 'failed';
    report({ type, scope, sourceId, jobId, attempts, error: text });
    return type;
  }

  /** Returns why the job was not changed. `lost`: this worker no longer holds it; `failed`: the store failed. */
  async #change(
    job: MemoryJob,
    options: MemoryStoreOptions,
    change: { to: 'waiting' | 'dead'; attempts?: number; dueAt?: string; error?: string },
  ): Promise<'lost' | 'failed' | undefined> {
    const { store, now } = this.#pipeline;
    try {
      await store.changeJob(job.id, { ...options, ...change, owner: this.#owner, now: now() });
      return undefined;
    } catch (error) {
      // After any other error the lease expires, and a worker takes the job again.
      if (isAborted(error)) return 'lost';
      logWarning(
        'The state of a memory job could not be stored. The job is taken again when its lease has expired.',
        error,
      );
      this.#wakeAfterLease(options);
      return 'failed';
    }
  }

  #workOf(tenant: string, options: MemoryStoreOptions): TenantWork {
    const work = this.#tenants.get(tenant) ?? { options, loops: 0, isWanted: false };
    this.#tenants.set(tenant, work);
    return work;
  }

  /** Tries again after an error of the store. */
  #wakeAfterLease(options: MemoryStoreOptions): void {
    const { now, limits } = this.#pipeline;
    this.#wakeAt(now() + limits.leaseMs, options);
  }

  /** Wakes up at a time. Does nothing with `worker: false`. */
  #wakeAt(due: number, options: MemoryStoreOptions): void {
    if (!this.#pipeline.worker || this.isClosed) return;
    const work = this.#workOf(this.#pipeline.store.tenant(options), options);
    if (work.nextWake && work.nextWake.at <= due) return;
    clearTimeout(work.nextWake?.timer);
    const onTime = () => {
      delete work.nextWake;
      this.wake(options);
    };
    // Waking up too early does no harm.
    const timer = setTimeout(onTime, Math.min(Math.max(0, due - this.#pipeline.now()), LONGEST_TIMER_MS));
    timer.unref();
    work.nextWake = { at: due, timer };
  }
}
