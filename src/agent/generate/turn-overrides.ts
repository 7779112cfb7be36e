import { AgentInputSchema } from '@genkit-ai/ai';
import { GenkitError, z } from 'genkit';
import type { AgentInput } from 'genkit/beta';
import { addressTo } from '../../errors.ts';
import type { TurnOverrides } from '../types.ts';

/** Genkit's input, and the options that a turn may override. */
export const TurnInputSchema = AgentInputSchema.extend({
  model: z.string().optional().describe('The model of this turn. Needs turnOverrides.models.'),
  config: z
    .record(z.unknown())
    .optional()
    .describe("Changes of the model's configuration, where the agent allows them."),
});

/** The options that an input overrides for its turn. */
export interface TurnChoice {
  model?: string;
  config?: Record<string, unknown>;
}

/**
 * The options that the input overrides.
 *
 * @throws `PERMISSION_DENIED` for an option that the agent does not let its callers override.
 */
export function choiceOf(
  input: AgentInput & TurnChoice,
  { models = [], config = false }: TurnOverrides = {},
): TurnChoice {
  if (input.model !== undefined && models !== true && !models.includes(input.model)) {
    throw denied(`the model '${input.model}'`, 'models');
  }
  if (input.config !== undefined && !config) throw denied('a configuration', 'config');
  return input;
}

function denied(what: string, option: string): GenkitError {
  const message = `A turn of this agent must not choose ${what}. To allow it, set turnOverrides.${option}.`;
  return addressTo('caller', new GenkitError({ status: 'PERMISSION_DENIED', message }));
}
