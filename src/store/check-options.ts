import { invalidArgument } from '../errors.ts';
import { unknownOption } from '../option-names.ts';
import type { RecordStore } from './contract.ts';
import type { Encryption } from './encryption/encryption.ts';

/** Checks one option's value. Returns a description of valid values for the error message; `undefined` when the value is valid. */
export type OptionCheck = (value: unknown) => string | undefined;

/** The value is checked elsewhere. */
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

/** A time, or a day, month or year without one. `Date.parse` alone takes other forms as well, and February 31. */
export const isTime: OptionCheck = (value) => {
  const [, year, month = '1', day = '1'] = (typeof value === 'string' && ISO_TIME.exec(value)) || [];
  const isDay =
    year !== undefined && new Date(new Date(0).setUTCFullYear(+year, +month - 1, +day)).getUTCDate() === +day;
  return isDay && !Number.isNaN(Date.parse(value as string)) ? undefined : 'a time in ISO 8601';
};

export const isFunction: OptionCheck = (value) => (typeof value === 'function' ? undefined : 'a function');

export const isObject: OptionCheck = (value) => (isPlain(value) ? undefined : 'an object');

export const isSignal: OptionCheck = (value) =>
  typeof (value as Partial<AbortSignal> | null)?.throwIfAborted === 'function' ? undefined : 'an AbortSignal';

/** The name of an action of Genkit, say of a model or a retriever; the action itself, or a reference to it. */
export const isActionArgument: OptionCheck = (value) => {
  const { name, __action } = (value ?? {}) as { name?: unknown; __action?: { name?: unknown } };
  const named = typeof value === 'string' ? value : (__action?.name ?? (typeof value === 'object' && name));
  return typeof named === 'string' && named.trim() !== ''
    ? undefined
    : 'defined with Genkit, or the name of one that is';
};

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A store that keeps session records. */
export const isRecordStore: OptionCheck = (value) => {
  const { readRecords, writeRecord } = (value ?? {}) as { [K in keyof RecordStore]?: unknown };
  return typeof readRecords === 'function' && typeof writeRecord === 'function'
    ? undefined
    : 'a store that keeps session records';
};

/** What encrypts for a store. */
export const isEncryption: OptionCheck = (value) => {
  const { cipher, open, forget } = (value ?? {}) as { [K in keyof Encryption]?: unknown };
  return [cipher, open, forget].every((method) => typeof method === 'function')
    ? undefined
    : 'an Encryption, as envelope() of genkitx-agents/privacy makes one';
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

/** The longest time that Node's timers take. A longer one would fire at once. */
export const LONGEST_TIMER_MS = 2_147_483_647;

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
 * @throws `INVALID_ARGUMENT` naming the option and what is allowed.
 */
export function checkOptions(
  owner: string,
  options: object | undefined,
  checks: Readonly<Record<string, OptionCheck>>,
): void {
  if (options === undefined) return;
  if (!isPlain(options)) throw invalidArgument(`${owner}: options must be an object.`);
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (!check) throw invalidArgument(unknownOption(owner, name, Object.keys(checks)));
    const expected = value === undefined ? undefined : check(value);
    if (expected !== undefined) throw invalidArgument(`${owner}: ${name} must be ${expected}.`);
  }
}

/** The options, with a default in place of each that is not given or is `undefined`. */
export function withDefaults<T extends object>(
  defaults: T,
  given: { readonly [K in keyof T]?: T[K] | undefined } = {},
): T {
  const known = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(known) };
}
