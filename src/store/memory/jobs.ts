import { GenkitError } from 'genkit';
import { logger } from 'genkit/logging';
import { addressTo, causedBy, invalidArgument, isUnreadable, notFound, quote } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import { isTime } from '../check-options.ts';
import { checkWhole, ownJson } from './checks.ts';
import type { MemoryJob, MemoryJobChange, MemoryJobHold } from './contract.ts';
import { describeMemoryScope, memoryScopeKey, memoryScopeOfKey } from './scope.ts';

/**
 * The job that is to be added.
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
    input: ownJson(input, `The input of job ${quote(id)}`),
    sourceId,
    attempts: 0,
    createdAt: at,
    dueAt: at,
  });
}

/** When a worker may take a job, in milliseconds since 1970; infinite for a dead one. */
export function memoryJobDueAt(job: MemoryJob): number {
  return job.state === 'dead' ? Infinity : Date.parse(job.state === 'running' ? job.leaseUntil! : job.dueAt);
}

/**
 * The job that a worker may take: of the jobs that are the first of their scope, and due, the one that has been due longest.
 *
 * @param jobs In the order in which they were added, with the name of their scope and {@link memoryJobDueAt}.
 * @param scope Only of this scope. `undefined`: of any.
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

/** The job as a worker holds it. */
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
    throw invalidArgument("A job changes to 'renew', 'waiting', 'dead' or 'remove'.");
  }
  if (to === 'renew') {
    checkWhole(leaseMs, 'leaseMs', 1);
    if (owner === undefined) throw invalidArgument('Only its owner renews the lease of a job.');
  }
  if (dueAt !== undefined && isTime(dueAt)) throw invalidArgument(`dueAt must be ${isTime(dueAt)}.`);
  if (attempts !== undefined) checkWhole(attempts, 'attempts');
  if (error !== undefined && typeof error !== 'string') throw invalidArgument('error must be a string.');
}

/**
 * The job after a change; `undefined`: it is removed.
 *
 * @throws `ABORTED` when it is not held as the change says, `NOT_FOUND` when there is none.
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
      `Memory job ${quote(id)} is held by the worker ${quote(job.owner!)}. Wait until its lease has run out.`,
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
 * @param scopeKey The scope that the job is to be of. Default: any.
 * @throws `ABORTED` unless the worker holds the job.
 */
export function assertMemoryJobHeld(job: MemoryJob | undefined, { id, owner }: MemoryJobHold, scopeKey?: string): void {
  const isHeld = job?.state === 'running' && job.owner === owner;
  if (isHeld && (scopeKey === undefined || memoryScopeKey(job.scope) === scopeKey)) return;
  const where = scopeKey === undefined ? '' : ` of ${describeMemoryScope(scopeKey)}`;
  throw aborted(
    `The worker ${quote(owner)} does not hold the memory job ${quote(id)}${where} any more: another worker has it, or it was removed. Its result does not count.`,
  );
}

/** @throws `ABORTED` unless the scope has the revision that a commit expects. */
export function assertMemoryRevision(scopeKey: string, actual: number, expected: number | undefined): void {
  if (expected === undefined || expected === actual) return;
  throw aborted(
    `The memories of ${describeMemoryScope(scopeKey)} have the revision ${actual}, not ${expected} as this commit ` +
      'expected. Read them again, and repeat the change.',
  );
}

/**
 * The error of reading a job, with its scope if it {@link isUnreadable}; another one as it is.
 *
 * @param where `of user "ada" of app "shop"`.
 */
export function jobReadError(error: unknown, where: string): unknown {
  if (!isUnreadable(error)) return error;
  const message = `A memory job ${where} can't be read. ${error.originalMessage} Until then the jobs of this scope wait; erasing its memories removes them.`;
  return addressTo('operator', causedBy(new GenkitError({ status: error.status, message }), error));
}

/** To catch the error of a job that {@link isUnreadable}: returns it, and throws others. */
export function unreadableOnly(error: unknown): GenkitError {
  if (isUnreadable(error)) return error;
  throw error;
}

/** Logs that a claim for any scope passed over one. */
export function reportUnreadableJob(error: GenkitError): void {
  logger.warn(`The memory jobs of one scope are not carried out, those of others are. ${error.message}`);
}

function aborted(message: string): GenkitError {
  return addressTo('status', new GenkitError({ status: 'ABORTED', message }));
}
