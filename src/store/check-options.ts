import { invalidArgument } from '../errors.ts';
import { unknownOption } from '../option-names.ts';
import type { RecordStore } from './contract.ts';

/** Checks one option's value; answers what it must be, or `undefined` when it is fine. */
export type OptionCheck = (value: unknown) => string | undefined;

export const isBoolean: OptionCheck = (value) => (typeof value === 'boolean' ? undefined : 'true or false');

export const isFunction: OptionCheck = (value) => (typeof value === 'function' ? undefined : 'a function');

export const isObject: OptionCheck = (value) => (typeof value === 'object' && value !== null ? undefined : 'an object');

/** A store that keeps session records. */
export const isRecordStore: OptionCheck = (value) => {
  const { readRecords, writeRecord } = (value ?? {}) as { [K in keyof RecordStore]?: unknown };
  return typeof readRecords === 'function' && typeof writeRecord === 'function'
    ? undefined
    : 'a store that keeps session records';
};

/** A whole number from `least` on. */
export function isWhole(least: number): OptionCheck {
  return (value) =>
    Number.isInteger(value) && (value as number) >= least ? undefined : `a whole number of at least ${least}`;
}

/** One of these strings. */
export function isOneOf(...values: string[]): OptionCheck {
  return (value) => (values.includes(value as string) ? undefined : values.map((v) => `'${v}'`).join(' or '));
}

/**
 * A misspelt option must not pass in silence.
 *
 * @throws `INVALID_ARGUMENT` naming the option and what is allowed.
 */
export function checkOptions(
  owner: string,
  options: object | undefined,
  checks: Readonly<Record<string, OptionCheck>>,
): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null) throw invalidArgument(`${owner}: options must be an object.`);
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (!check) throw invalidArgument(unknownOption(owner, name, Object.keys(checks)));
    const expected = value === undefined ? undefined : check(value);
    if (expected !== undefined) throw invalidArgument(`${owner}: ${name} must be ${expected}.`);
  }
}
