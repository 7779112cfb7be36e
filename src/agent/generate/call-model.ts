import { generate, generateMiddleware, type PromptAction } from '@genkit-ai/ai';
import {
  GenerateResponse,
  GenerationResponseError,
  GenkitError,
  type GenerateOptions,
  type GenerateRequest,
} from 'genkit';
import type { AgentFinishReason, AgentInput, AgentStreamChunk, MessageData } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { toJsonSchema } from 'genkit/schema';
import { isToolRequest, withResponses } from '../../session/tool-requests.ts';
import type { TurnHandler, TurnResult } from '../../session/turn.ts';
import { renderWith } from '../../session/state/session-state.ts';
import { adoptMessages, viewOf, type Session } from '../../session/session.ts';
import type { TurnMemory } from '../../session/turn-memory.ts';
import { addUsage } from '../../session/usage.ts';
import { takePrefetched } from './prefetch.ts';
import { PlacedHistory, toPlainMessage } from './prompt-history.ts';
import { toResumption } from './resume.ts';
import { ResumedTools } from './resumed-tools.ts';
import { invalidOutput } from './invalid-output.ts';
import { gateOf, passesGate, type ToolGate } from './tool-gate.ts';
import { isPartial, TurnProgress } from './turn-progress.ts';
import { choiceOf } from './turn-overrides.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { callWithin, type OpenWindow } from './turn-window.ts';
import type { TurnWindow } from '../../context/types.ts';
import type { ChangingStore } from '../../store/contract.ts';
import type { AgentFn, TurnOverrides } from '../types.ts';

/** The prompt of an agent. */
export interface PromptSettings {
  registry: Registry;
  /** The agent has a store. */
  isStored: boolean;
  promptName: string;
  /** Values of the prompt's input variables. */
  promptInput?: object;
  turnOverrides?: TurnOverrides;
  /** No code or template of the prompt reads the conversation. */
  isHistoryOpaque?: boolean;
  /** Opens the agent's context window. Default: the model is sent the whole conversation. */
  openWindow?: OpenWindow | undefined;
  /** The agent's memory across sessions. Default: none. */
  memory?: AgentDefinition['memory'];
  /** Changes the request before the model gets it. Default: no change. */
  modelRequest?: ChangingStore['modelRequest'];
}

/** Returns the function of an agent that answers each input with its prompt. */
export function promptAgentFn<State>(settings: PromptSettings): AgentFn<State> {
  const prompt = new Prompt(settings);
  return async (sess, { sendChunk, abortSignal, context }) => {
    const { session } = sess;
    const handler: TurnHandler = (input, turn) => {
      const { sessionId } = session;
      const { snapshotId, parentSnapshotId: parentId } = turn;
      const reads = takePrefetched(session);
      const saved = settings.isStored ? { snapshotId } : {};
      const memory = settings.memory?.openTurn({ sessionId, ...saved, context, started: reads?.memories });
      const prefetched = reads?.summaries;
      const window = settings.openWindow?.(session, { leafId: parentId, context, memory, prefetched });
      const change = (request: GenerateRequest) => settings.modelRequest?.(request, { sessionId, parentId, context });
      const gate = gateOf(turn);
      return callModel({ settings, prompt, session, input, gate, window, memory, change, sendChunk, abortSignal });
    };
    await sess.run(passesGate(handler));
    return { message: viewOf(sess.session).messages.at(-1), artifacts: sess.getArtifacts() };
  };
}

/** Renders a prompt. Genkit types the input as the schema itself instead of the schema's input. */
type Render = (input: object, options: { messages: MessageData[] }) => Promise<GenerateOptions>;

interface GenerateTurn<State> {
  settings: PromptSettings;
  prompt: Prompt;
  session: Session<State>;
  input: AgentInput;
  gate: ToolGate | undefined;
  window: TurnWindow | undefined;
  memory: TurnMemory | undefined;
  /** Returns the changed request for the model; `undefined` for no change. */
  change: (request: GenerateRequest) => Promise<GenerateRequest> | undefined;
  sendChunk: (chunk: AgentStreamChunk) => void;
  abortSignal: AbortSignal;
}

/** Runs one turn of a prompt agent: renders the prompt around the conversation, calls the model and its tools, and adds the reply to the session. */
async function callModel<State>(turn: GenerateTurn<State>): Promise<TurnResult> {
  const { settings, prompt, session, window, memory, sendChunk, abortSignal } = turn;
  const render = prompt.found ?? (await prompt.find());
  const earlier = historyOf(session, turn.input);
  const resumption = turn.input.resume && toResumption(turn.input.resume, earlier);
  const { history, options: resume } = resumption ?? { history: earlier };
  const placed = new PlacedHistory(history);
  const progress = new TurnProgress(session, placed);
  const { model, config } = choiceOf(turn.input, settings.turnOverrides);
  const messages = placed.toPlace(settings.isHistoryOpaque ?? false);
  const rendered = await renderWith(session, () => render(settings.promptInput ?? {}, { messages }));
  const sent = placed.toSend(rendered.messages ?? []);
  const onChunk: GenerateOptions['onChunk'] = (chunk) => {
    const modelChunk = chunk.toJSON();
    progress.onChunk(modelChunk);
    sendChunk({ modelChunk });
  };
  const request: GenerateOptions = { ...rendered, messages: sent, abortSignal, onChunk };
  const memoryTools = memory?.tools() ?? [];
  if (memoryTools.length > 0) request.tools = [...(rendered.tools ?? []), ...memoryTools];
  if (model !== undefined) request.model = model;
  if (config) request.config = { ...(rendered.config as object | undefined), ...config };
  let tools: ResumedTools | undefined;
  const isOneCall = !request.tools?.length && !rendered.use?.length && !isStructured(rendered);
  const isWholeConversation = settings.isHistoryOpaque && !placed.hasResources && history === viewOf(session).messages;
  const isDirect = isOneCall && isWholeConversation && !resume && !window && !settings.modelRequest;
  if (isDirect) {
    // A single model call on the unchanged conversation needs no middleware to observe it.
    progress.onModelCall(sent);
    const call = { request: { messages: sent }, origins: placed.originsOf(sent), abortSignal };
    const { messages: toSend } = memory ? await memory.place(call) : call.request;
    request.messages = withResponses(toSend);
  } else {
    tools = new ResumedTools();
    let hasRestarted = false;
    const onRestart = () => {
      if (!hasRestarted) progress.onRestart(history, [resume?.respond ?? []].flat());
      hasRestarted = true;
    };
    const { gate, change } = turn;
    const observer = observe({
      session,
      progress,
      placed,
      tools,
      window,
      memory,
      change,
      gate,
      onRestart,
      abortSignal,
    });
    request.use = [...(resume ? [watchRestarts(tools)] : []), ...(rendered.use ?? []), observer];
    if (resume) request.resume = resume;
  }
  let response: GenerateResponse | MessageData;
  abortSignal.throwIfAborted();
  try {
    response = await generate(settings.registry, request);
  } catch (error) {
    const interrupted = resume && tools?.interruptedReply(history.at(-1), resume);
    if (!interrupted) {
      // The middleware adds up the usage of each call; without it, the usage of the only call is in the error.
      if (!tools && error instanceof GenerationResponseError) addUsage(session, error.detail.response.usage);
      throw turnError(error, session, rendered, progress);
    }
    response = interrupted;
  }
  if (!(response instanceof GenerateResponse)) {
    adoptMessages(session, [...history.slice(0, -1), response]);
    sendChunk(interruptChunk(response));
    return { finishReason: 'interrupted' };
  }
  if (!tools) addUsage(session, response.usage);
  // A direct request may hold memories, which are not part of the conversation.
  const conversation = response.request && !isDirect ? placed.conversationOf(response.request.messages) : [...history];
  const reply = response.message && toPlainMessage(response.message.toJSON());
  if (reply) conversation.push(reply);
  adoptMessages(session, conversation);
  const finishReason = response.finishReason as AgentFinishReason | undefined;
  if (reply && finishReason === 'interrupted') sendChunk(interruptChunk(reply));
  return {
    ...(finishReason && { finishReason }),
    ...(isStructured(rendered) && finishReason !== 'interrupted' && { output: parsedOutputOf(response) }),
  };
}

/** The error of a failed `generate`. A reply that does not fit the output schema stays in the conversation, and so in the failed snapshot. */
function turnError<State>(
  error: unknown,
  session: Session<State>,
  { output }: GenerateOptions,
  progress: TurnProgress<State>,
): unknown {
  const conversation = progress.ended;
  const invalid =
    conversation && invalidOutput(error, toJsonSchema({ schema: output?.schema, jsonSchema: output?.jsonSchema }));
  if (!invalid) return error;
  adoptMessages(session, conversation);
  return invalid;
}

/** Whether the prompt declares the format of the reply. */
function isStructured({ output }: GenerateOptions): boolean {
  return output?.schema !== undefined || output?.jsonSchema !== undefined;
}

/** The parsed output of the reply; `undefined` for none. Genkit returns `null` both for no output and for the output `null`. */
function parsedOutputOf({ output, text }: GenerateResponse): unknown {
  const parsed: unknown = output;
  return parsed === null && text.trim() !== 'null' ? undefined : parsed;
}

/** Records the result of each restarted tool. It must wrap all other middleware, which may interrupt the tool as well. */
function watchRestarts(tools: ResumedTools) {
  return restarts({
    tool: (request, options, next) => tools.around(request, () => next(request, options)),
  });
}

interface Observers<State> {
  session: Session<State>;
  progress: TurnProgress<State>;
  placed: PlacedHistory;
  tools: ResumedTools;
  window: TurnWindow | undefined;
  memory: TurnMemory | undefined;
  change: GenerateTurn<State>['change'];
  gate: ToolGate | undefined;
  /** Called when the first of the waiting tools runs. */
  onRestart: () => void;
  /** When it is aborted, no further call of the model or of a tool begins. */
  abortSignal: AbortSignal;
}

/** Middleware that observes each model call and each tool as it runs, inside of all other middleware. */
function observe<State>(turn: Observers<State>) {
  const { session, progress, placed, tools, window, memory, change, gate, onRestart, abortSignal } = turn;
  let modelName: string | undefined;
  return observers({
    ...(window && {
      generate: (envelope, options, next) => {
        modelName = envelope.request.model;
        return next(envelope, options);
      },
    }),
    model: async (request, options, next) => {
      abortSignal.throwIfAborted();
      tools.end();
      progress.onModelCall(request.messages);
      memory?.noteRequest(request);
      const call = async (fitting: typeof request) => {
        const changed = (await change(fitting)) ?? fitting;
        abortSignal.throwIfAborted();
        return next({ ...changed, messages: withResponses(changed.messages) }, options);
      };
      const response = await (window
        ? callWithin(window, session, { request, placed, model: modelName, abortSignal, next: call })
        : call(
            memory
              ? await memory.place({ request, origins: placed.originsOf(request.messages), abortSignal })
              : request,
          ));
      addUsage(session, response.usage);
      progress.onReply(response.message);
      return response;
    },
    tool: async (request, options, next) => {
      abortSignal.throwIfAborted();
      if (!tools.isOver) {
        await gate?.();
        onRestart();
      }
      const response = await next(request, { ...options, abortSignal });
      progress.onToolDone(request, response);
      return response;
    },
  });
}

type Middleware = ReturnType<Parameters<typeof generateMiddleware>[1]>;

/** The middleware of one `generate`, passed as the configuration of a defined one. It is private, so no trace shows it. */
class MiddlewareConfig {
  readonly #middleware: Middleware;

  constructor(middleware: Middleware) {
    this.#middleware = middleware;
  }

  /** Defines the middleware once, under one name: a new name for each turn would slow down Genkit's registry. */
  static named(name: string) {
    const define = generateMiddleware({ name }, ({ config }) => (config as unknown as MiddlewareConfig).#middleware);
    return (middleware: Middleware) => define(new MiddlewareConfig(middleware));
  }
}

const restarts = MiddlewareConfig.named('genkitx-agents-restarts');
const observers = MiddlewareConfig.named('genkitx-agents-turn');

/** The messages for the model. An input without new content drops a reply that was cut off, so that the reply is generated again. */
function historyOf<State>(session: Session<State>, { message, resume }: AgentInput): readonly MessageData[] {
  const { messages } = viewOf(session);
  const last = messages.at(-1);
  return last && isPartial(last) && !message && !resume ? messages.slice(0, -1) : messages;
}

/** The chunk with the tool requests that wait for the caller. Genkit's agents send it with the role 'tool'. */
function interruptChunk(reply: MessageData): AgentStreamChunk {
  return { modelChunk: { role: 'tool', content: reply.content.filter(isToolRequest) } };
}

/** The agent's prompt. It is looked up on first use, because it may be defined after the agent. */
class Prompt {
  found: Render | undefined;
  readonly #settings: PromptSettings;

  constructor(settings: PromptSettings) {
    this.#settings = settings;
  }

  /** @throws `NOT_FOUND` */
  async find(): Promise<Render> {
    const { registry, promptName } = this.#settings;
    const action = (await registry.lookupAction(`/prompt/${promptName}`)) as PromptAction | undefined;
    const prompt = action?.__executablePrompt;
    if (prompt) return (this.found = (input, options) => (prompt.render as Render)(input, options));
    throw new GenkitError({
      status: 'NOT_FOUND',
      message: `Prompt '${promptName}' was not found. Define it before the agent's first turn.`,
    });
  }
}
