import { unknownOption } from '../option-names.ts';
import { shorten, type JsonValueError } from '../json/fault.ts';
import { copyJson } from '../json/value.ts';
import { AgentError } from './errors.ts';
import type { AgentInit, AgentInput, SnapshotLookup, TurnOptions } from './types.ts';

/** Names every option of a type; the compiler finds a missing one. */
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

export function invalid(message: string): AgentError {
  return new AgentError({ status: 'INVALID_ARGUMENT', message });
}

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
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalid(`${owner} takes ${what}, not ${kindOf(options)}.`);
  }
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown !== undefined) {
    throw invalid(unknownOption(owner, unknown, Object.keys(names)));
  }
}

/**
 * A copy of what the caller hands over: getters and proxies run here, and nowhere later. A value that JSON can only write as something else,
 * such as a `Date`, is returned as it is.
 *
 * @throws AgentError `INVALID_ARGUMENT`, with the path, when reading the value throws, or when it can't be written as JSON.
 */
function copyOf<T>(owner: string, value: T): T {
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  try {
    return copyJson(value);
  } catch (fault) {
    try {
      JSON.stringify(value);
      return value;
    } catch (cause) {
      const { path, reason } = fault as JsonValueError;
      const place = path === '' ? 'this value' : `the value at '${shorten(path)}'`;
      throw new AgentError({ status: 'INVALID_ARGUMENT', message: `${owner} can't take ${place}: ${reason}.`, cause });
    }
  }
}

/** @throws AgentError `INVALID_ARGUMENT` for an invalid start of a conversation. */
export function readInit<State>(given: AgentInit<State> | undefined): AgentInit<State> | undefined {
  const init = copyOf('chat', given);
  checkNames('chat', init, INIT, 'an object: { sessionId }, { snapshotId } or { state }');
  return init;
}

/** @throws AgentError `INVALID_ARGUMENT` for an invalid snapshot lookup. */
export function readLookup(given: SnapshotLookup): SnapshotLookup {
  const lookup = copyOf('loadChat', given);
  checkNames('loadChat', lookup ?? null, LOOKUP, 'an object: { sessionId } or { snapshotId }');
  return lookup;
}

/** @throws AgentError `INVALID_ARGUMENT` for invalid options of a turn. */
export function readOptions(given: TurnOptions = {}): TurnOptions {
  const options = copyOf('send', given);
  checkNames('send', options, TURN_OPTIONS);
  return options;
}

/** @throws AgentError `INVALID_ARGUMENT` for an invalid input of a turn. */
export function readInput(given: string | AgentInput): AgentInput {
  if (typeof given === 'string') {
    return { message: { role: 'user', content: [{ text: given }] } };
  }
  const input = copyOf('send', given);
  checkNames('send', input ?? null, INPUT, "a text, or an object of a turn's input, { message } say");
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
