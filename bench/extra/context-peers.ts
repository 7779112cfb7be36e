/** ADK's compaction and LangChain's `trimMessages` in the conversation of the standard workload. */
import { setTimeout as sleep } from 'node:timers/promises';
import { INSTRUCTIONS, scriptedSummary, TOOL, type ScriptedTurn } from '../context/conversation.ts';
import type { Talker } from '../context/genkit-talker.ts';
import { tokensOf, type Ledger, type Line } from '../context/ledger.ts';

/** The used part of ADK. It is installed only for the bench, so the type check can't use its types. */
interface Adk {
  BaseLlm: new (options: { model: string }) => object;
  LlmAgent: new (options: object) => object;
  LlmSummarizer: new (options: { llm: object }) => object;
  TokenBasedContextCompactor: new (options: object) => object;
  FunctionTool: new (options: object) => object;
  InMemoryRunner: new (options: { agent: object; appName: string }) => {
    sessionService: { createSession(request: object): Promise<{ id: string }> };
    runAsync(request: object): AsyncIterable<{ errorMessage?: string }>;
  };
  setLogger(logger: null): void;
  version: string;
}

interface AdkPart {
  text?: string;
  functionCall?: { name: string; args: unknown };
  functionResponse?: { name: string; response: unknown };
}

interface AdkRequest {
  contents: readonly { role: string; parts: readonly AdkPart[] }[];
  config?: { systemInstruction?: string };
}

/** ADK's options for compaction. */
export interface AdkCompaction {
  /** Compacts if the last request had more tokens than this. */
  readonly tokenThreshold: number;
  /** The number of events that stay unchanged. */
  readonly eventRetentionSize: number;
  /** Called before a summary is written. Optional. */
  readonly onSummary?: () => Promise<void>;
}

const OWNER = { appName: 'bench', userId: 'one' };

/** An agent of ADK with its own runner, session service, compactor and summarizer. */
export async function adkTalker(ledger: Ledger, compaction: AdkCompaction): Promise<Talker & { version: string }> {
  const adk = await library<Adk>('@google/adk');
  adk.setLogger(null);
  const { onSummary, ...limits } = compaction;
  let turn: ScriptedTurn;
  let summaries = 0;

  class Model extends adk.BaseLlm {
    async *generateContentAsync(request: AdkRequest) {
      // Its compaction leaves out events that have the same millisecond as the last summarized one.
      await nextMillisecond();
      const promptTokenCount = ledger.agentSent(linesOfAdk(request));
      const { call, reply } = turn;
      const isCalling = call && !request.contents.at(-1)!.parts[0]!.functionResponse;
      const part: object = isCalling
        ? { functionCall: { name: TOOL.name, id: call.ref, args: call.input } }
        : { text: reply };
      yield { content: { role: 'model', parts: [part] }, usageMetadata: { promptTokenCount } };
      await nextMillisecond();
    }
  }
  class Summarizer extends adk.BaseLlm {
    async *generateContentAsync(request: AdkRequest) {
      await onSummary?.();
      ledger.summarizerSent(linesOfAdk(request));
      yield { content: { role: 'model', parts: [{ text: scriptedSummary(++summaries) }] } };
    }
  }

  const parameters = { type: 'OBJECT', properties: { query: { type: 'STRING' } }, required: ['query'] };
  const agent = new adk.LlmAgent({
    name: 'talker',
    model: new Model({ model: 'talker' }),
    instruction: INSTRUCTIONS,
    tools: [new adk.FunctionTool({ ...TOOL, parameters, execute: async () => turn.call!.output })],
    contextCompactors: [
      new adk.TokenBasedContextCompactor({
        ...limits,
        summarizer: new adk.LlmSummarizer({ llm: new Summarizer({ model: 'summarizer' }) }),
      }),
    ],
  });
  const runner = new adk.InMemoryRunner({ agent, appName: OWNER.appName });
  const { id: sessionId } = await runner.sessionService.createSession(OWNER);
  return {
    version: adk.version,
    send: async (next) => {
      turn = next;
      const newMessage = { role: 'user', parts: [{ text: next.question }] };
      for await (const { errorMessage } of runner.runAsync({ ...OWNER, sessionId, newMessage })) {
        if (errorMessage !== undefined) throw new Error(errorMessage);
      }
      await nextMillisecond();
    },
  };
}

async function nextMillisecond(): Promise<void> {
  const start = Date.now();
  while (Date.now() <= start) await sleep(1);
}

function linesOfAdk({ contents, config }: AdkRequest): Line[] {
  const system = config?.systemInstruction;
  return [
    ...(system === undefined ? [] : [{ role: 'system', text: system }]),
    ...contents.map(({ role, parts }) => ({ role, text: parts.map(textOfAdk).join('\n') })),
  ];
}

function textOfAdk({ text, functionCall, functionResponse }: AdkPart): string {
  if (functionCall) return JSON.stringify({ name: functionCall.name, input: functionCall.args });
  if (functionResponse) return JSON.stringify({ name: functionResponse.name, output: functionResponse.response });
  return text ?? '';
}

/** A message of LangChain. */
interface LangChainMessage {
  content: string;
  tool_calls?: readonly { name: string; args: unknown }[];
  name?: string;
  getType(): string;
}

interface LangChain {
  SystemMessage: new (content: string) => LangChainMessage;
  HumanMessage: new (content: string) => LangChainMessage;
  AIMessage: new (fields: object) => LangChainMessage;
  ToolMessage: new (fields: object) => LangChainMessage;
  trimMessages(messages: readonly LangChainMessage[], options: object): Promise<LangChainMessage[]>;
}

/** A conversation whose messages are trimmed before each model call, as in LangChain's documentation. */
export async function langChainTalker(ledger: Ledger, maxTokens: number): Promise<Talker> {
  const langchain = await library<LangChain>('@langchain/core/messages');
  const { SystemMessage, HumanMessage, AIMessage, ToolMessage } = langchain;
  const messages = [new SystemMessage(INSTRUCTIONS)];
  const options = {
    maxTokens,
    strategy: 'last',
    startOn: 'human',
    includeSystem: true,
    tokenCounter: (some: readonly LangChainMessage[]) => tokensOf(linesOfLangChain(some)),
  };
  const callModel = async () =>
    void ledger.agentSent(linesOfLangChain(await langchain.trimMessages(messages, options)));
  return {
    send: async ({ question, call, reply }) => {
      messages.push(new HumanMessage(question));
      await callModel();
      if (call) {
        messages.push(
          new AIMessage({ content: '', tool_calls: [{ name: TOOL.name, id: call.ref, args: call.input }] }),
          new ToolMessage({ content: JSON.stringify(call.output), name: TOOL.name, tool_call_id: call.ref }),
        );
        await callModel();
      }
      messages.push(new AIMessage({ content: reply }));
    },
  };
}

function linesOfLangChain(messages: readonly LangChainMessage[]): Line[] {
  return messages.map((message) => ({ role: message.getType(), text: textOfLangChain(message) }));
}

function textOfLangChain({ content, name, tool_calls: calls = [] }: LangChainMessage): string {
  const called = calls.map((call) => JSON.stringify({ name: call.name, input: call.args })).join('\n');
  if (name !== undefined) return `{"name":${JSON.stringify(name)},"output":${content}}`;
  return `${content}${called}`;
}

async function library<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}
