import { defineTool, type ToolAction } from '@genkit-ai/ai';
import { getAsyncContext } from '@genkit-ai/core';
import { z, type Part } from 'genkit';
import type { Registry } from 'genkit/registry';

import { oncePerRegistry } from './once-per-registry.ts';
import { CURRENT_SESSION, viewOf, type Session } from '../../session/session.ts';

const inputSchema = z.object({ name: z.string().describe('The name of the artifact, as it is listed.') });

/** The input of the tool `read_artifact`. */
export interface ReadArtifactInput {
  /** The name of the artifact, as it is listed. */
  name: string;
}

type ReadArtifact = ToolAction<z.ZodType<ReadArtifactInput>, z.ZodString>;

const tool = oncePerRegistry(define);

/**
 * The tool `read_artifact` for an agent whose window lists the session's artifacts by name (`artifacts: true`). The model gets the text of
 * an artifact; for a media part only its type: `[media: image/png]`.
 *
 * @param ai The `Genkit` instance of the agent. The tool is defined once for each.
 * @example
 * const window = contextWindow({ artifacts: true });
 * const support = defineAgent(ai, { name: 'support', model, tools: [readArtifact(ai)], context: window, store });
 */
export function readArtifact(ai: {
  readonly registry: Registry;
}): ToolAction<z.ZodType<ReadArtifactInput>, z.ZodString> {
  return tool(ai);
}

function define(registry: Registry): ReadArtifact {
  return defineTool(
    registry,
    {
      name: 'read_artifact',
      description: 'Reads an artifact of this conversation, say a document that was made earlier, by its name.',
      inputSchema,
      outputSchema: z.string(),
    },
    async ({ name }) => {
      const session = getAsyncContext().getStore<Session>(CURRENT_SESSION);
      const artifacts = session ? viewOf(session).artifacts : [];
      const found = artifacts.find((artifact) => artifact.name === name);
      if (found) return found.parts.map(partText).join('\n');
      const names = artifacts.flatMap((artifact) => artifact.name ?? []);
      return names.length > 0 ? `There is no such artifact. There are: ${names.join(', ')}.` : 'There is no artifact.';
    },
  );
}

function partText(part: Part): string {
  if (part.text !== undefined) return part.text;
  if (part.data !== undefined) return JSON.stringify(part.data);
  return part.media ? `[media: ${part.media.contentType ?? 'of an unknown type'}]` : '[a part that is not text]';
}
