import { GenkitError, type z } from 'genkit';
import { logger } from 'genkit/logging';
import { addressTo, invalidArgument } from '../../errors.ts';
import { parsePointer } from '../../json/pointer.ts';
import { copyJson, JsonValueError } from '../../json/value.ts';
import { changesOf } from '../../store/contract.ts';
import type { AgentDefinition } from '../agent-definition.ts';

const MAX_PROBLEMS = 5;

export interface CheckedState {
  /** Names the state in error messages. */
  what: string;
  /** The caller sent the state and must correct it; otherwise the agent's code or data is at fault. */
  sentByCaller?: boolean;
}

/**
 * Checks the custom state against the agent's `stateSchema`, if it has one. A session without custom state passes.
 *
 * The message contains no values of the state and, when a `clientTransform` hides parts of the state, no keys either.
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
      `${shown.join('; ')}${isAll ? '.' : '; and more.'}${redactionAdvice(agent, checked)}`,
    () =>
      error.issues
        .slice(0, MAX_PROBLEMS)
        .map(({ path }) => ['custom', ...path].join('.'))
        .join(', '),
  );
}

/** Whether the custom state fits the agent's `stateSchema`, if it has one. Never rejects, even when the schema's own code throws. */
export async function fitsStateSchema<State>(agent: AgentDefinition<State>, custom: unknown): Promise<boolean> {
  if (!agent.stateSchema || custom === undefined) return true;
  try {
    return (await agent.stateSchema.safeParseAsync(custom)).success;
  } catch {
    return false;
  }
}

/**
 * A copy of the custom state after a turn.
 *
 * @throws `INTERNAL` when it is not JSON.
 */
export function copyCustomState<State>(agent: AgentDefinition<State>, custom: State, what: string): State {
  try {
    return copyJson(custom);
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    const path = parsePointer(error.path);
    // The reason may contain another path, and so keys.
    const reason = agent.clientTransform?.state ? 'is not a JSON value' : `is not a JSON value: ${error.reason}`;
    throw unfit({ what }, `The custom state of ${what} cannot be stored: ${placeOf(agent, path)} ${reason}.`, () =>
      ['custom', ...path].join('.'),
    );
  }
}

function unfit({ what, sentByCaller }: CheckedState, message: string, paths: () => string): GenkitError {
  if (sentByCaller) return invalidArgument(message);
  logger.error(`The custom state of ${what} is invalid at: ${paths()}`);
  return addressTo('operator', new GenkitError({ status: 'INTERNAL', message }));
}

function redactionAdvice<State>({ sharedStore }: AgentDefinition<State>, { sentByCaller }: CheckedState): string {
  if (sentByCaller || !changesOf(sharedStore).redactCustom) return '';
  return ' If a placeholder of redacting is the cause, name the member in its option except, or let the schema accept placeholders.';
}

/** Joins with dots, not slashes: the filter for file paths in messages would take a JSON pointer for one. */
function placeOf<State>({ clientTransform }: AgentDefinition<State>, path: readonly (string | number)[]): string {
  return clientTransform?.state ? 'a member' : ['custom', ...path].join('.');
}

/** Describes the problem from the schema alone, because Zod's own messages quote values and keys, and so may a schema author's. */
function problemOf(issue: z.ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.received === 'undefined' ? 'is missing' : `must be of type ${issue.expected}`;
    case 'invalid_literal':
      return `must be ${JSON.stringify(issue.expected)}`;
    case 'invalid_enum_value':
      return `must be one of ${issue.options.map((option) => JSON.stringify(option)).join(', ')}`;
    case 'unrecognized_keys':
      return 'has members that are not in the schema';
    case 'invalid_string':
      return typeof issue.validation === 'string' ? `must be a valid ${issue.validation}` : 'has an invalid format';
    case 'too_small':
      return `must be at least ${issue.minimum}${unitOf(issue.type)}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${unitOf(issue.type)}`;
    case 'not_multiple_of':
      return `must be a multiple of ${issue.multipleOf}`;
    case 'invalid_union':
    case 'invalid_union_discriminator':
      return 'fits no member of its union';
    default:
      return 'is not valid';
  }
}

function unitOf(type: string): string {
  if (type === 'string') return ' characters long';
  return type === 'array' || type === 'set' ? ' elements long' : '';
}
