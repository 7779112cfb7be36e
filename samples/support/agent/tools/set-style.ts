import type { AgentsGenkit } from 'genkitx-agents';
import { PreferencesSchema } from '../state.ts';
import { scratchpad } from './remember.ts';

/** Stores the reply style that the customer prefers, for this conversation and all others. */
export function defineSetStyle(ai: AgentsGenkit) {
  return ai.defineTool(
    {
      name: 'setStyle',
      description:
        'Keeps how the customer wants to be answered from now on: brief or full. Only when the customer asked for it.',
      inputSchema: PreferencesSchema,
      outputSchema: PreferencesSchema,
    },
    async ({ style }) => {
      scratchpad().set('user:style', style);
      return { style };
    },
  );
}
