import { defineTool, type ToolAction } from '@genkit-ai/ai';
import { getAsyncContext } from '@genkit-ai/core';
import { z } from 'genkit';
import type { Registry } from 'genkit/registry';

import { oncePerRegistry } from './once-per-registry.ts';
import { CURRENT_SESSION, type Session } from '../../session/session.ts';

const inputSchema = z.object({ topic: z.string().optional().describe('The topic, in a few words.') });

/** The input of the tool `end_topic`. */
export interface EndTopicInput {
  /** The topic, in a few words. */
  topic?: string | undefined;
}

type EndTopic = ToolAction<z.ZodType<EndTopicInput>, z.ZodString>;

const tool = oncePerRegistry(define);

/**
 * The tool `end_topic` for an agent whose window summarizes. The model calls it when a task is done; after that turn the session is
 * summarized.
 *
 * @param ai The `Genkit` instance of the agent. The tool is defined once for each.
 * @example
 * const support = defineAgent(ai, { name: 'support', model, tools: [endTopic(ai)], context: window, store });
 */
export function endTopic(ai: { readonly registry: Registry }): ToolAction<z.ZodType<EndTopicInput>, z.ZodString> {
  return tool(ai);
}

function define(registry: Registry): EndTopic {
  return defineTool(
    registry,
    {
      name: 'end_topic',
      description:
        'Call this once when the task or topic that the conversation was about is finished and the user has what they came for. ' +
        'The conversation so far is then condensed to notes. It changes nothing for the user, and needs no announcement.',
      inputSchema,
      outputSchema: z.string(),
    },
    async () => {
      getAsyncContext().getStore<Session>(CURRENT_SESSION)?.compact();
      return 'Noted.';
    },
  );
}
