import { GenkitError } from 'genkit';
import { logger } from 'genkit/logging';
import { addressTo, causedBy, invalidArgument, isUnreadable, notFound, quote } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import { isTime } from '../check-options.ts';
import { checkWhole, frozenJson } from './checks.ts';
import type { MemoryJob, MemoryJobChange, MemoryJobHold } from './contract.ts';
import { describeMemoryScope, memoryScopeKey, memoryScopeOfKey } from './scope.ts';

/**
 * Returns the job to add.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function newJob(
  { id, scope, input, sourceId }: Pick<MemoryJob, 'id' | 'scope' | 'input' | 'sourceId'>,
  now: number,
): MemoryJob {
  assertId(id, 'job id');
  assertId(sourceId, 'source id');
  const at = new Date(now).toISOString();
  return Object.freeze({
    id,
    scope: memoryScopeOfKey(memoryScopeKey(scope)),
    state: 'waiting',
    input: frozenJson(input, `The input of job ${quote(id)}`),
    sourceId,
    attempts: 0,
    createdAt: at,
    dueAt: at,
  });
}

/** Returns when a worker may take a job, in milliseconds since 1970; `Infinity` for a dead job. */
export function memoryJobDueAt(job: MemoryJob): number {
  return job.state === 'dead' ? Infinity : Date.parse(job.state === 'running' ? job.leaseUntil! : job.dueAt);
}

/**
 * Returns the job to claim: of the due jobs that are first in their scope, the job that has been due longest.
 *
 * @param jobs The jobs in the order in which they were added, with the name of their scope and {@link memoryJobDueAt}.
 * @param scope Only jobs of this scope. `undefined`: any scope.
 */
export function jobToClaim<J extends { readonly scope: string; readonly dueAt: number }>(
  jobs: readonly J[],
  scope: string | undefined,
  now: number,
): J | undefined {
  const first = new Map<string, J>();
  for (const job of jobs) if (job.dueAt < Infinity && !first.has(job.scope)) first.set(job.scope, job);
  const due = [...first.values()].filter((job) => job.dueAt <= now && (scope ?? job.scope) === job.scope);
  return due.toSorted((x, y) => x.dueAt - y.dueAt)[0];
}

/** Returns the job with a worker's lease. */
export function leaseMemoryJob(
  job: MemoryJob,
  { owner, leaseMs, now }: { owner: string; leaseMs: number; now: number },
): MemoryJob {
  const leaseUntil = new Date(now + leaseMs).toISOString();
  return Object.freeze({ ...job, state: 'running', attempts: job.attempts + 1, owner, leaseUntil });
}

/** @throws `INVALID_ARGUMENT` */
export function checkJobChange({ owner, to, leaseMs, dueAt, attempts, error }: MemoryJobChange): void {
  if (owner !== undefined) assertId(owner, 'worker name');
  if (!['renew', 'waiting', 'dead', 'remove'].includes(to)) {
    throw invalidArgument("The change of a job must be 'renew', 'waiting', 'dead' or 'remove'.");
  }
  if (to === 'renew') {
    checkWhole(leaseMs, 'leaseMs', 1);
    if (owner === undefined) throw invalidArgument('Only the owner of a job can renew its lease. Pass owner.');
  }
  if (dueAt !== undefined && isTime(dueAt)) throw invalidArgument(`dueAt must be ${isTime(dueAt)}.`);
  if (attempts !== undefined) checkWhole(attempts, 'attempts');
  if (error !== undefined && typeof error !== 'string') throw invalidArgument('error must be a string.');
}

/**
 * Returns the job after a change; `undefined`: it is removed.
 *
 * @throws `ABORTED` if the job is not held by the change's owner, or is held although the change has no owner; `NOT_FOUND` if it does not
 *   exist.
 */
export function changeMemoryJob(
  job: MemoryJob | undefined,
  id: string,
  change: MemoryJobChange,
  now: number,
): MemoryJob | undefined {
  const { owner, to, leaseMs, dueAt, attempts, error } = change;
  if (owner !== undefined) assertMemoryJobHeld(job, { id, owner });
  else if (!job) throw notFound(`There is no memory job ${quote(id)}.`);
  else if (job.state === 'running' && memoryJobDueAt(job) > now) {
    throw aborted(
      `Memory job ${quote(id)} is held by the worker ${quote(job.owner!)}. Wait until the lease has expired.`,
    );
  }
  if (to === 'remove') return undefined;
  const changed = { ...job!, attempts: attempts ?? job!.attempts, ...(error !== undefined && { error }) };
  if (to === 'renew') return Object.freeze({ ...changed, leaseUntil: new Date(now + leaseMs!).toISOString() });
  const { owner: _, leaseUntil: __, ...free } = changed;
  if (to === 'dead') return Object.freeze({ ...free, state: to });
  return Object.freeze({ ...free, state: to, dueAt: dueAt ?? new Date(now).toISOString() });
}

/**
 * @param scopeKey The scope that the job must have. Default: any.
 * @throws `ABORTED` unless the worker holds the job.
 */
export function assertMemoryJobHeld(job: MemoryJob | undefined, { id, owner }: MemoryJobHold, scopeKey?: string): void {
  const isHeld = job?.state === 'running' && job.owner === owner;
  if (isHeld && (scopeKey === undefined || memoryScopeKey(job.scope) === scopeKey)) return;
  const where = scopeKey === undefined ? '' : ` of ${describeMemoryScope(scopeKey)}`;
  throw aborted(
    `The worker ${quote(owner)} no longer holds the memory job ${quote(id)}${where}: another worker took it, or it was removed. The result of the attempt is ignored.`,
  );
}

/** @throws `ABORTED` unless the scope has the revision that a commit expects. */
export function assertMemoryRevision(scopeKey: string, actual: number, expected: number | undefined): void {
  if (expected === undefined || expected === actual) return;
  throw aborted(
    `The memories of ${describeMemoryScope(scopeKey)} have revision ${actual}, but this commit expected ${expected}. ` +
      'Read them again, and repeat the change.',
  );
}

/**
 * Adds the scope to an error of reading a job, if the job {@link isUnreadable}. Returns any other error unchanged.
 *
 * @param where For example `of user "ada" of app "shop"`.
 */
export function jobReadError(error: unknown, where: string): unknown {
  if (!isUnreadable(error)) return error;
  const message = `A memory job ${where} can't be read. ${error.originalMessage} Until then the jobs of this scope wait. Erasing the memories of the scope removes the jobs.`;
  return addressTo('operator', causedBy(new GenkitError({ status: error.status, message }), error));
}

/** For a catch clause: returns the error of a job that {@link isUnreadable}, and throws other errors. */
export function unreadableOnly(error: unknown): GenkitError {
  if (isUnreadable(error)) return error;
  throw error;
}

/** Logs that a claim without a scope skipped an unreadable scope. */
export function reportUnreadableJob(error: GenkitError): void {
  logger.warn(
    `The memory jobs of one scope are skipped, because one can't be read. Other scopes are not affected. ${error.message}`,
  );
}

function aborted(message: string): GenkitError {
  return addressTo('status', new GenkitError({ status: 'ABORTED', message }));
}
