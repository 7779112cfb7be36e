import { dynamicTool } from 'genkit/tool';
import { z } from 'genkit';

/**
 * The tool `end_topic`: the model calls it when a task is done, and the session is summarized after the turn.
 *
 * @param onEnd Called each time.
 */
export function endTopicTool(onEnd: () => void) {
  return dynamicTool(
    {
      name: 'end_topic',
      description:
        'Call this once when the task or topic that the conversation was about is finished and the user has what they came for. ' +
        'The conversation so far is then condensed to notes. It changes nothing for the user, and needs no announcement.',
      inputSchema: z.object({ topic: z.string().optional().describe('The topic, in a few words.') }),
      outputSchema: z.string(),
    },
    async () => {
      onEnd();
      return 'Noted.';
    },
  );
}
