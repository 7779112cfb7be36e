/** Our agent in the conversation of the standard workload. */
import { z, type GenerateRequest, type MessageData, type Part } from 'genkit';
import { defineAgent, genkit, InMemorySessionStore, type SessionStore } from 'genkitx-agents';
import type { ContextWindow } from 'genkitx-agents/context';
import { INSTRUCTIONS, scriptedSummary, TOOL, type ScriptedTurn } from './conversation.ts';
import type { Ledger, Line } from './ledger.ts';

/** Plays the conversation. */
export interface Talker {
  /** Plays a turn. */
  send(turn: ScriptedTurn): Promise<void>;
}

/** The name of the model that writes summaries. */
export const SUMMARIZER = 'summarizer';

export interface GenkitTalkerOptions {
  /** Default: tokens are not counted. */
  readonly ledger?: Ledger;
  /** Default: no window. */
  readonly context?: ContextWindow;
  /** Default: a new one in memory. */
  readonly store?: SessionStore;
  /** The snapshot or session that the chat continues. Default: a new session. */
  readonly from?: { readonly sessionId: string } | { readonly snapshotId: string };
  /** Each turn resumes `from`, like on a server. Default: the chat continues from its last snapshot. */
  readonly isResuming?: boolean;
  /** Called with each request of the agent. Optional. */
  readonly onRequest?: (request: GenerateRequest) => void;
  /** Called before a summary is written. Optional. */
  readonly onSummary?: () => Promise<void>;
}

/** An agent whose model gives the answers of the workload. It does not wait for summaries. */
export function genkitTalker(options: GenkitTalkerOptions): Talker {
  const { ledger, context, store = new InMemorySessionStore(), from = {}, onRequest, onSummary, isResuming } = options;
  const ai = genkit({});
  let turn: ScriptedTurn;
  let summaries = 0;
  ai.defineModel({ name: 'talker', apiVersion: 'v2', supports: { tools: true, systemRole: true } }, async (request) => {
    onRequest?.(request);
    const { call, reply } = turn;
    const isCalling = call && request.messages.at(-1)!.role !== 'tool';
    const part: Part = isCalling
      ? { toolRequest: { name: TOOL.name, ref: call.ref, input: call.input } }
      : { text: reply };
    return answer(part, ledger?.agentSent(linesOf(request.messages)));
  });
  ai.defineModel({ name: SUMMARIZER, apiVersion: 'v2', supports: { systemRole: true } }, async ({ messages }) => {
    await onSummary?.();
    return answer({ text: scriptedSummary(++summaries) }, ledger?.summarizerSent(linesOf(messages)));
  });
  const tool = ai.defineTool({ ...TOOL, inputSchema: z.object({ query: z.string() }) }, async () => turn.call!.output);
  const agent = defineAgent(ai, {
    name: 'talker',
    model: 'talker',
    system: INSTRUCTIONS,
    tools: [tool],
    store,
    ...(context && { context }),
  });
  const chat = agent.chat(from);
  return {
    send: async (next) => {
      turn = next;
      await (isResuming ? agent.chat(from) : chat).send(next.question);
    },
  };
}

function answer(part: Part, inputTokens: number | undefined) {
  return {
    message: { role: 'model' as const, content: [part] },
    finishReason: 'stop' as const,
    ...(inputTokens !== undefined && { usage: { inputTokens } }),
  };
}

function linesOf(messages: readonly MessageData[]): Line[] {
  return messages.map(({ role, content }) => ({ role, text: content.map(textOf).join('\n') }));
}

function textOf({ text, toolRequest, toolResponse }: Part): string {
  if (toolRequest) return JSON.stringify({ name: toolRequest.name, input: toolRequest.input });
  if (toolResponse) return JSON.stringify({ name: toolResponse.name, output: toolResponse.output });
  return text ?? '';
}
