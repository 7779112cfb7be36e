import { invalidArgument } from '../errors.ts';
import { isMembers } from '../json/fault.ts';
import { LONGEST_TIMER_MS, unknownOption } from '../option-names.ts';
import type { RecordStore } from './contract.ts';
import type { Encryption } from './encryption/encryption.ts';

export { LONGEST_TIMER_MS };

/** Checks the value of an option. Returns a description of valid values for the error message; `undefined` if the value is valid. */
export type OptionCheck = (value: unknown) => string | undefined;

/** Accepts any value: it is checked elsewhere. */
export const isAny: OptionCheck = () => undefined;

export const isBoolean: OptionCheck = (value) => (typeof value === 'boolean' ? undefined : 'true or false');

export const isString: OptionCheck = (value) => (typeof value === 'string' ? undefined : 'a string');

/** A string that is not blank. */
export const isText: OptionCheck = (value) =>
  typeof value === 'string' && value.trim() !== '' ? undefined : 'a string that is not blank';

export const isNumber: OptionCheck = (value) => (Number.isFinite(value) ? undefined : 'a number');

export const isShare: OptionCheck = (value) =>
  typeof value === 'number' && value >= 0 && value <= 1 ? undefined : 'a number of 0 to 1';

const ISO_TIME =
  /^(\d{4}|[+-]\d{6})(?:-(\d{2})(?:-(\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?)?)?$/i;

/** Accepts a time, or a day, month or year without a time. `Date.parse` alone would also accept other formats, and February 31. */
export const isTime: OptionCheck = (value) => {
  const [, year, month = '1', day = '1'] = (typeof value === 'string' && ISO_TIME.exec(value)) || [];
  const isDay =
    year !== undefined && new Date(new Date(0).setUTCFullYear(+year, +month - 1, +day)).getUTCDate() === +day;
  return isDay && !Number.isNaN(Date.parse(value as string)) ? undefined : 'a time in ISO 8601';
};

export const isFunction: OptionCheck = (value) => (typeof value === 'function' ? undefined : 'a function');

export const isObject: OptionCheck = (value) => (isMembers(value) ? undefined : 'an object');

export const isSignal: OptionCheck = (value) =>
  typeof (value as Partial<AbortSignal> | null)?.throwIfAborted === 'function' ? undefined : 'an AbortSignal';

/** Accepts the name of a Genkit action (for example of a model or a retriever), the action itself, or a reference to it. */
export const isActionArgument: OptionCheck = (value) => {
  const { name, __action } = (value ?? {}) as { name?: unknown; __action?: { name?: unknown } };
  const named = typeof value === 'string' ? value : (__action?.name ?? (typeof value === 'object' && name));
  return typeof named === 'string' && named.trim() !== ''
    ? undefined
    : 'a Genkit action, a reference to one, or its name';
};

/** Accepts a store that keeps session records. */
export const isRecordStore: OptionCheck = (value) => {
  const { readRecords, writeRecord } = (value ?? {}) as { [K in keyof RecordStore]?: unknown };
  return typeof readRecords === 'function' && typeof writeRecord === 'function'
    ? undefined
    : 'a store that keeps session records';
};

/** Accepts an {@link Encryption}. */
export const isEncryption: OptionCheck = (value) => {
  const { cipher, open, forget } = (value ?? {}) as { [K in keyof Encryption]?: unknown };
  return [cipher, open, forget].every((method) => typeof method === 'function')
    ? undefined
    : 'an Encryption, for example from envelope() of genkitx-agents/privacy';
};

/** A text, or an object. */
export const isTextOrObject: OptionCheck = (value) => (typeof value === 'string' ? undefined : isObject(value));

/** A list whose items pass a check. */
export function isListOf(item: OptionCheck, items: string): OptionCheck {
  return (value) =>
    Array.isArray(value) && value.every((one) => item(one) === undefined) ? undefined : `a list of ${items}`;
}

/** A whole number from `least` on, up to `most`. */
export function isWhole(least: number, most = Infinity): OptionCheck {
  const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
  return (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? undefined
      : `a whole number ${range}`;
}

/** Milliseconds for a timer. */
export function isTimerMs(least: number): OptionCheck {
  return isWhole(least, LONGEST_TIMER_MS);
}

/** One of these strings. */
export function isOneOf(...values: string[]): OptionCheck {
  return (value) => (values.includes(value as string) ? undefined : values.map((v) => `'${v}'`).join(' or '));
}

/**
 * Refuses unknown options, which may be misspelt, and invalid values.
 *
 * @throws `INVALID_ARGUMENT` with the option and the allowed values.
 */
export function checkOptions(
  owner: string,
  options: object | undefined,
  checks: Readonly<Record<string, OptionCheck>>,
): void {
  if (options === undefined) return;
  if (!isMembers(options)) throw invalidArgument(`${owner}: options must be an object.`);
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (!check) throw invalidArgument(unknownOption(owner, name, Object.keys(checks)));
    const expected = value === undefined ? undefined : check(value);
    if (expected !== undefined) throw invalidArgument(`${owner}: ${name} must be ${expected}.`);
  }
}

/** Returns the options with defaults for those that are missing or `undefined`. */
export function withDefaults<T extends object>(
  defaults: T,
  given: { readonly [K in keyof T]?: T[K] | undefined } = {},
): T {
  const known = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(known) };
}
