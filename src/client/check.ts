import { unknownOption } from '../option-names.ts';
import { isMembers, shorten } from '../json/fault.ts';
import { copyPlain } from '../json/plain.ts';
import { AgentError, invalid } from './errors.ts';
import type { AgentInit, AgentInput, SnapshotLookup, TurnOptions } from './types.ts';

/** The names of all options of a type. The compiler reports a missing one. */
export type AllNames<T> = Readonly<Record<keyof T, true>>;

const INIT: AllNames<AgentInit> = { sessionId: true, snapshotId: true, state: true };
const LOOKUP = { sessionId: true, snapshotId: true };
const RESUME: AllNames<NonNullable<AgentInput['resume']>> = { respond: true, restart: true };
const TURN_OPTIONS: AllNames<TurnOptions> = {
  abortSignal: true,
  model: true,
  config: true,
  onStreamId: true,
  onReconnecting: true,
};
const INPUT: AllNames<AgentInput> & { model: true; config: true } = {
  message: true,
  resume: true,
  detach: true,
  model: true,
  config: true,
};

/**
 * Refuses unknown options, so that a misspelt one is noticed.
 *
 * @param what The expected form, for the message.
 * @throws AgentError `INVALID_ARGUMENT`
 */
export function checkNames(owner: string, options: unknown, names: object, what = 'an object of options'): void {
  if (options === undefined) {
    return;
  }
  if (!isMembers(options)) {
    throw invalid(`${owner} takes ${what}, not ${kindOf(options)}.`);
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown !== undefined) {
    throw invalid(unknownOption(owner, unknown, Object.keys(names)));
  }
}

/**
 * A copy of the caller's value. Getters and proxies run here, and never later.
 *
 * @throws AgentError `INVALID_ARGUMENT`, with the path, for a value that throws when it is read, contains itself, or has a BigInt.
 */
function copyOf<T>(owner: string, value: T): T {
  const path: string[] = [];
  try {
    return copyPlain(value, path);
  } catch (cause) {
    const place = path.length > 0 ? `the value at '${shorten(`/${path.join('/')}`)}'` : 'this value';
    const message = `${owner} can't take ${place}: it cannot be read, contains itself or is a BigInt. Pass plain data.`;
    throw new AgentError({ status: 'INVALID_ARGUMENT', message, cause });
  }
}

/** A copy of options whose names are checked. */
function read<T>(owner: string, given: T, names: object, what?: string): T {
  const copy = copyOf(owner, given);
  checkNames(owner, copy, names, what);
  return copy;
}

/** @throws AgentError `INVALID_ARGUMENT` for an invalid start of a conversation. */
export function readInit<State>(given: AgentInit<State> | undefined): AgentInit<State> | undefined {
  return read('chat', given, INIT, 'an object: { sessionId }, { snapshotId } or { state }');
}

/** @throws AgentError `INVALID_ARGUMENT` for an invalid snapshot lookup. */
export function readLookup(given: SnapshotLookup): SnapshotLookup {
  return read('loadChat', given ?? null, LOOKUP, 'an object: { sessionId } or { snapshotId }');
}

/** @throws AgentError `INVALID_ARGUMENT` for invalid options of a turn. */
export function readOptions(given: TurnOptions = {}): TurnOptions {
  return read('send', given, TURN_OPTIONS);
}

/** @throws AgentError `INVALID_ARGUMENT` for an invalid input of a turn. */
export function readInput(given: string | AgentInput): AgentInput {
  if (typeof given === 'string') {
    return { message: { role: 'user', content: [{ text: given }] } };
  }
  const input = read('send', given ?? null, INPUT, 'a text, or an object: { message }');
  checkNames('resume', input.resume, RESUME, 'an object: { respond } or { restart }');
  return input;
}

function kindOf(value: unknown): string {
  if (value === null) {
    return 'null';
  }
  if (Array.isArray(value)) {
    return 'an array';
  }
  return `a ${typeof value}`;
}
