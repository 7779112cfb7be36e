import { setTimeout as pause } from 'node:timers/promises';
import type { MessageData, Part } from 'genkit';
import { genkitPluginV2, model, type GenkitPluginV2 } from 'genkit/plugin';
import { planReply, type Plan } from './offline-rules.ts';

export const OFFLINE_MODEL = 'support/offline';

/**
 * A stand-in for a language model, for when there is none. It understands a few kinds of sentences by rules (`offline-rules.ts`), and says
 * so; everything around it is real: it asks for tools, gets their results, and streams its reply.
 *
 * @param paceMs Between two words, in ms: none unless told.
 */
export function offlinePlugin(paceMs = 0): GenkitPluginV2 {
  return genkitPluginV2({
    name: 'support',
    init: () => [
      model(
        { name: OFFLINE_MODEL, label: 'Offline model', supports: { multiturn: true, tools: true, systemRole: true } },
        async ({ messages }, { sendChunk, abortSignal }) => {
          const plan = planReply(messages);
          for (const part of chunksOf(plan)) {
            abortSignal?.throwIfAborted();
            sendChunk({ role: 'model', content: [part] });
            await pause(paceMs, undefined, { signal: abortSignal });
          }
          return { message: messageOf(plan), finishReason: 'stop' };
        },
      ),
    ],
  });
}

/** Word by word, as a language model would. */
function chunksOf(plan: Plan): Part[] {
  if ('tool' in plan) return partsOf(plan);
  return (plan.text.match(/\s*\S+/g) ?? []).map((text) => ({ text }));
}

function messageOf(plan: Plan): MessageData {
  return { role: 'model', content: partsOf(plan) };
}

function partsOf(plan: Plan): Part[] {
  return 'tool' in plan
    ? [{ toolRequest: { name: plan.tool, ref: plan.ref, input: plan.input } }]
    : [{ text: plan.text }];
}
