import { AgentInputSchema } from '@genkit-ai/ai';
import { GenkitError, z } from 'genkit';
import type { AgentInput } from 'genkit/beta';
import { addressTo } from '../../errors.ts';
import type { TurnOverrides } from '../types.ts';

/** Genkit's input, and what a turn may choose. */
export const TurnInputSchema = AgentInputSchema.extend({
  model: z.string().optional().describe('The model of this turn, where the agent leaves the choice.'),
  config: z
    .record(z.unknown())
    .optional()
    .describe("Changes of the model's configuration, where the agent allows them."),
});

/** What an input chooses for its turn. */
export interface TurnChoice {
  model?: string;
  config?: Record<string, unknown>;
}

/**
 * What the input chooses, if it may.
 *
 * @throws `PERMISSION_DENIED` for what the agent does not leave to its callers.
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
  const message = `This agent does not let a turn choose ${what}: see turnOverrides.${option}.`;
  return addressTo('caller', new GenkitError({ status: 'PERMISSION_DENIED', message }));
}
