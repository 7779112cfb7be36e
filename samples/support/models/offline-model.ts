import { setTimeout as pause } from 'node:timers/promises';
import type { MessageData, Part } from 'genkit';
import { genkitPluginV2, model, type GenkitPluginV2 } from 'genkit/plugin';
import { planReply, type Plan } from './offline-rules.ts';

export const OFFLINE_MODEL = 'support/offline';

/** The pause before the first word, in words: a language model also needs time before its first word. */
const SILENT_WORDS = 12;

/**
 * A stand-in for a language model, for use if none is available. It understands a few kinds of sentences by rules (`offline-rules.ts`), and its replies say so.
 * Everything else is real: it calls tools, gets their results, streams its reply, and counts tokens.
 *
 * @param paceMs The pause between two words, in ms.
 */
export function offlinePlugin(paceMs: number): GenkitPluginV2 {
  return genkitPluginV2({
    name: 'support',
    init: () => [
      model(
        { name: OFFLINE_MODEL, label: 'Offline model', supports: { multiturn: true, tools: true, systemRole: true } },
        async ({ messages }, { sendChunk, abortSignal: signal }) => {
          const message = messageOf(planReply(messages));
          await pause(paceMs * SILENT_WORDS, undefined, { signal });
          for (const part of chunksOf(message)) {
            signal?.throwIfAborted();
            sendChunk({ role: 'model', content: [part] });
            await pause(paceMs, undefined, { signal });
          }
          return { message, finishReason: 'stop', usage: usageOf(messages, message) };
        },
      ),
    ],
  });
}

/** Streams word by word, like a language model. */
function chunksOf({ content }: MessageData): Part[] {
  return content.flatMap((part): Part[] => part.text?.match(/\s*\S+/g)?.map((text) => ({ text })) ?? [part]);
}

function messageOf(plan: Plan): MessageData {
  const part: Part =
    'tool' in plan ? { toolRequest: { name: plan.tool, ref: plan.ref, input: plan.input } } : { text: plan.text };
  return { role: 'model', content: [part] };
}

function usageOf(asked: readonly MessageData[], reply: MessageData) {
  const inputTokens = tokensOf(asked);
  const outputTokens = tokensOf([reply]);
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

/** About four characters are a token. */
function tokensOf(messages: readonly MessageData[]): number {
  return Math.ceil(JSON.stringify(messages.flatMap(({ content }) => content)).length / 4);
}
