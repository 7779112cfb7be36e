import { GenkitError, type z } from 'genkit';
import { logger } from 'genkit/logging';
import { addressTo, invalidArgument } from '../../errors.ts';
import { parsePointer } from '../../json/pointer.ts';
import { copyJson, JsonValueError } from '../../json/value.ts';
import type { AgentDefinition } from '../agent-definition.ts';

/** More problems than these are not listed. */
const MAX_PROBLEMS = 5;

/** The state that is checked. */
export interface CheckedState {
  /** What it belongs to, as the message calls it. */
  what: string;
  /** The caller sent it, and is to mend it; otherwise the agent's own code or data is at fault. */
  sentByCaller?: boolean;
}

/**
 * Checks the custom state against the agent's `stateSchema`, if it has one. A session that has no custom state yet is fine.
 *
 * The message holds nothing of the state: neither values nor, where a `clientTransform` says what of the state may be seen, keys.
 *
 * @throws `INVALID_ARGUMENT` for a state that the caller sent, `INTERNAL` for any other.
 */
export async function assertCustomState<State>(
  agent: AgentDefinition<State>,
  custom: unknown,
  checked: CheckedState,
): Promise<void> {
  if (!agent.stateSchema || custom === undefined) return;
  const { error } = await agent.stateSchema.safeParseAsync(custom);
  if (!error) return;
  const problems = error.issues.map((issue) => `${placeOf(agent, issue.path)} ${problemOf(issue)}`);
  const shown = [...new Set(problems)].slice(0, MAX_PROBLEMS);
  const isAll = new Set(problems).size <= MAX_PROBLEMS;
  throw unfit(
    checked,
    `The custom state of ${checked.what} does not fit the stateSchema of agent '${agent.name}': ` +
      `${shown.join('; ')}${isAll ? '.' : '; and more.'}`,
    () =>
      error.issues
        .slice(0, MAX_PROBLEMS)
        .map(({ path }) => ['custom', ...path].join('.'))
        .join(', '),
  );
}

/** Whether the custom state fits the agent's `stateSchema`, if it has one. Never rejects, though a schema's own code may throw. */
export async function fitsStateSchema<State>(agent: AgentDefinition<State>, custom: unknown): Promise<boolean> {
  if (!agent.stateSchema || custom === undefined) return true;
  try {
    return (await agent.stateSchema.safeParseAsync(custom)).success;
  } catch {
    return false;
  }
}

/**
 * A copy of the custom state that a turn left.
 *
 * @throws `INTERNAL` when it holds what JSON cannot.
 */
export function copyCustomState<State>(agent: AgentDefinition<State>, custom: State, what: string): State {
  try {
    return copyJson(custom);
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    const path = parsePointer(error.path);
    // A reason may name another place, and so keys.
    const reason = agent.clientTransform?.state ? 'is not a JSON value' : `is not a JSON value: ${error.reason}`;
    throw unfit({ what }, `The custom state of ${what} cannot be stored: ${placeOf(agent, path)} ${reason}.`, () =>
      ['custom', ...path].join('.'),
    );
  }
}

function unfit({ what, sentByCaller }: CheckedState, message: string, paths: () => string): GenkitError {
  if (sentByCaller) return invalidArgument(message);
  logger.error(`The custom state of ${what} is not what it has to be, at: ${paths()}`);
  return addressTo('operator', new GenkitError({ status: 'INTERNAL', message }));
}

/** Dots and no slashes: a pointer would look like a file's path to whoever looks for those. */
function placeOf<State>({ clientTransform }: AgentDefinition<State>, path: readonly (string | number)[]): string {
  return clientTransform?.state ? 'a member' : ['custom', ...path].join('.');
}

/** What is wrong, in words that come from the schema alone: Zod's own messages quote values and keys, and a schema's author may well do so. */
function problemOf(issue: z.ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.received === 'undefined' ? 'is missing' : `must be of type ${issue.expected}`;
    case 'invalid_literal':
      return `must be ${JSON.stringify(issue.expected)}`;
    case 'invalid_enum_value':
      return `must be one of ${issue.options.map((option) => JSON.stringify(option)).join(', ')}`;
    case 'unrecognized_keys':
      return 'has members that the schema does not know';
    case 'invalid_string':
      return typeof issue.validation === 'string' ? `must be a valid ${issue.validation}` : 'has not the right form';
    case 'too_small':
      return `must be at least ${issue.minimum}${unitOf(issue.type)}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${unitOf(issue.type)}`;
    case 'not_multiple_of':
      return `must be a multiple of ${issue.multipleOf}`;
    case 'invalid_union':
    case 'invalid_union_discriminator':
      return 'fits none of its forms';
    default:
      return 'is not valid';
  }
}

function unitOf(type: string): string {
  if (type === 'string') return ' characters long';
  return type === 'array' || type === 'set' ? ' elements long' : '';
}
