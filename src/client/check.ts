import { unknownOption } from '../option-names.ts';
import { AgentError } from './errors.ts';
import type { AgentInit, AgentInput, SnapshotLookup, TurnOptions } from './types.ts';

/** Names every option of a type; the compiler finds a missing one. */
export type AllNames<T> = Readonly<Record<keyof T, true>>;

const INIT: AllNames<AgentInit> = { sessionId: true, snapshotId: true, state: true };
const LOOKUP = { sessionId: true, snapshotId: true };
const RESUME: AllNames<NonNullable<AgentInput['resume']>> = { respond: true, restart: true };
const TURN_OPTIONS: AllNames<TurnOptions> = { abortSignal: true, model: true, config: true };
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

/** @throws AgentError `INVALID_ARGUMENT` for an invalid start of a conversation. */
export function checkInit(init: unknown): void {
  checkNames('chat', init, INIT, 'an object: { sessionId }, { snapshotId } or { state }');
}

/** @throws AgentError `INVALID_ARGUMENT` for an invalid snapshot lookup. */
export function checkLoad(lookup: unknown): asserts lookup is SnapshotLookup {
  checkNames('loadChat', lookup ?? null, LOOKUP, 'an object: { sessionId } or { snapshotId }');
}

/** @throws AgentError `INVALID_ARGUMENT` for an invalid input of a turn. */
export function checkTurn(input: unknown, options: unknown): void {
  checkNames('send', options, TURN_OPTIONS);
  if (typeof input === 'string') {
    return;
  }
  checkNames('send', input ?? null, INPUT, "a text, or an object of a turn's input, { message } say");
  checkNames('resume', (input as AgentInput).resume, RESUME, 'an object: { respond } or { restart }');
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
