import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';

/** A typed error, recognized by its members, because a store may use another copy of Genkit than the kit. */
interface TypedError extends Error {
  status: string;
}

const STATUSES = new Set([
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'ABORTED',
  'ALREADY_EXISTS',
  'NOT_FOUND',
  'DATA_LOSS',
  'UNAVAILABLE',
  'RESOURCE_EXHAUSTED',
  'PERMISSION_DENIED',
  'DEADLINE_EXCEEDED',
  'UNIMPLEMENTED',
]);

export function isTyped(error: unknown): error is TypedError {
  return error instanceof Error && STATUSES.has((error as { status?: unknown }).status as string);
}

/** Returns the status of a typed error. Any other thrown value fails the test. */
export function statusOf(error: unknown): string {
  assert.ok(isTyped(error), `expected a GenkitError with a status, got ${describe(error)}`);
  return error.status;
}

/**
 * Runs `call`, which must be refused with one of these statuses.
 *
 * @param mention A text that the message must contain, for example an id.
 */
export async function refuses(
  status: string | readonly string[],
  call: () => unknown,
  mention?: string,
): Promise<TypedError> {
  const expected = [status].flat();
  let answer: unknown;
  try {
    answer = await call();
  } catch (error) {
    assert.ok(expected.includes(statusOf(error)), `expected ${expected.join(' or ')}, got ${describe(error)}`);
    assertSpeaksSafely(error as TypedError, mention);
    return error as TypedError;
  }
  assert.fail(`expected ${expected.join(' or ')}, but the call succeeded and returned ${show(answer)}`);
}

/** Matches an absolute path where servers usually keep data. */
const SERVER_PATH =
  /(?:^|[\s"'`(=])(?:\/(?:data|home|mnt|opt|private|root|srv|tmp|Users|usr|var|workspace)\/|[A-Z]:\\)/;

function assertSpeaksSafely(error: TypedError, mention: string | undefined): void {
  const { message } = error;
  assert.ok(!/\n\s+at /.test(message), `the message contains a stack: ${message}`);
  // An id of the caller may look like a path.
  const own = mention === undefined ? message : message.replaceAll(mention, '');
  assert.ok(
    ![process.cwd(), tmpdir()].some((path) => own.includes(path)),
    `the message contains a path of this process: ${message}`,
  );
  assert.ok(!SERVER_PATH.test(own), `the message contains a path of the server: ${message}`);
  if (mention !== undefined) assert.ok(message.includes(mention), `the message does not name ${mention}: ${message}`);
}

/** Asserts deep equality: `0` is not `-0`, an `undefined` member is not a missing one, and an own `__proto__` counts. */
export function equal(actual: unknown, expected: unknown, what: string): void {
  try {
    assert.deepStrictEqual(actual, expected);
  } catch {
    assert.fail(`${what}: expected ${show(expected)}, got ${show(actual)}`);
  }
}

/** Returns the same text for equal JSON values. The order of members does not matter. */
export function textOf(value: unknown): string {
  if (Object.is(value, -0)) return '-0';
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`;
  const members = Object.entries(value).toSorted(([x], [y]) => (x < y ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${textOf(member)}`).join()}}`;
}

/** The number of cases to run at once: a database answers them in the time of one. */
const GROUP = 8;

/** Runs `check` on each case, even if an earlier one failed, and fails with the names of the failed cases. */
export async function each<T>(
  cases: readonly T[],
  nameOf: (one: T) => string,
  check: (one: T) => Promise<void>,
): Promise<void> {
  const failed: string[] = [];
  let first: unknown;
  for (let at = 0; at < cases.length; at += GROUP) {
    const group = cases.slice(at, at + GROUP);
    const results = await Promise.allSettled(group.map((one) => check(one)));
    for (const [i, result] of results.entries()) {
      if (result.status === 'fulfilled') continue;
      first ??= result.reason;
      failed.push(nameOf(group[i]!));
    }
  }
  if (failed.length === 0) return;
  const message = `${failed.length} of ${cases.length} fail: ${failed.join('; ')}. The first: ${describe(first)}`;
  throw new assert.AssertionError({ message });
}

/** Waits until `check` is true. */
export async function eventually(
  check: () => boolean | Promise<boolean>,
  timeoutMs: number,
  what: string,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await check())) {
    if (Date.now() > deadline) assert.fail(`${what} did not happen within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Formats a value for a message. */
export function show(value: unknown): string {
  const text = typeof value === 'bigint' || typeof value === 'symbol' ? value.toString() : textOf(value);
  return text.length <= 600 ? text : `${text.slice(0, 600)}… (${text.length} characters)`;
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : show(error);
}
