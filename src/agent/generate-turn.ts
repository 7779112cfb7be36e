import { generate, generateMiddleware, type PromptAction } from '@genkit-ai/ai';
import { GenerateResponse, GenkitError, type GenerateOptions } from 'genkit';
import type { AgentFinishReason, AgentInput, AgentStreamChunk, MessageData } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import type { TurnResult } from '../session/session-runner.ts';
import { adoptMessages, viewOf, type Session } from '../session/session.ts';
import { reserveSnapshotId } from '../snapshot/ids.ts';
import { conversationOf, historyInOne, tagHistory, tagPreamble, toPlainMessage } from './prompt-history.ts';
import { toResumption } from './resume.ts';
import { ResumedTools } from './resumed-tools.ts';
import { isPartial, TurnProgress } from './turn-progress.ts';
import { choiceOf } from './turn-overrides.ts';
import type { AgentFn, TurnOverrides } from './types.ts';

/** What an agent says with a prompt. */
export interface PromptVoice {
  registry: Registry;
  promptName: string;
  /** The values of the prompt's input variables. */
  promptInput?: object;
  turnOverrides?: TurnOverrides;
  /** The prompt has no code or template that looks into the conversation. */
  isHistoryOpaque?: boolean;
}

/** The function of an agent that answers each input with its prompt. */
export function promptAgentFn<State>(voice: PromptVoice): AgentFn<State> {
  const findPrompt = promptFinder(voice);
  return async (sess, { sendChunk, abortSignal }) => {
    await sess.run(async (input) => {
      const render = await findPrompt();
      return generateTurn({ ...voice, render, session: sess.session, input, sendChunk, abortSignal });
    });
    return { message: viewOf(sess.session).messages.at(-1), artifacts: sess.getArtifacts() };
  };
}

/** A prompt as the turn needs it; Genkit types its input as the schema, not as what the schema reads. */
type Render = (input: object, options: { messages: MessageData[] }) => Promise<GenerateOptions>;

interface GenerateTurn<State> extends PromptVoice {
  render: Render;
  session: Session<State>;
  input: AgentInput;
  sendChunk: (chunk: AgentStreamChunk) => void;
  abortSignal: AbortSignal;
}

/** One turn of a prompt agent: render the prompt around the conversation, call the model and its tools, keep what was said. */
async function generateTurn<State>(turn: GenerateTurn<State>): Promise<TurnResult> {
  const { session, sendChunk, abortSignal } = turn;
  const earlier = historyOf(session, turn.input);
  const resumption = turn.input.resume && toResumption(turn.input.resume, earlier);
  const { history, options: resume } = resumption ?? { history: earlier };
  const progress = new TurnProgress(session);
  const { model, config } = choiceOf(turn.input, turn.turnOverrides);
  const placed = turn.isHistoryOpaque ? historyInOne(history) : tagHistory(history);
  const rendered = await turn.render(turn.promptInput ?? {}, { messages: placed });
  const tools = new ResumedTools();
  const answering = generate(turn.registry, {
    ...rendered,
    ...(model !== undefined && { model }),
    ...(config && { config: { ...(rendered.config as object | undefined), ...config } }),
    messages: tagPreamble(rendered.messages ?? [], history),
    ...(resume && { resume }),
    use: [...(rendered.use ?? []), observe(progress, tools)],
    abortSignal,
    onChunk: (chunk) => {
      const modelChunk = chunk.toJSON();
      progress.onChunk(modelChunk);
      sendChunk({ modelChunk });
    },
  });
  const response = await answering.catch((error: unknown) => {
    const again = resume && tools.interruptedReply(history.at(-1), resume);
    if (again) return again;
    throw error;
  });
  if (!(response instanceof GenerateResponse)) {
    adoptMessages(session, [...history.slice(0, -1), response]);
    sendChunk(interruptChunk(response));
    return { finishReason: 'interrupted' };
  }
  const said = response.request ? conversationOf(response.request.messages) : history;
  const reply = response.message && toPlainMessage(response.message.toJSON());
  adoptMessages(session, reply ? [...said, reply] : said);
  const finishReason = response.finishReason as AgentFinishReason | undefined;
  if (reply && finishReason === 'interrupted') sendChunk(interruptChunk(reply));
  return { ...(finishReason && { finishReason }) };
}

/** Lets the turn's own observers see each model call and each tool, inside of all other middleware. */
function observe<State>(progress: TurnProgress<State>, tools: ResumedTools) {
  // A name of its own: a `generate` inside a tool has its own observers.
  const observer = generateMiddleware({ name: `turn-${reserveSnapshotId()}` }, () => ({
    model: (request, options, next) => {
      tools.end();
      progress.onModelCall(request);
      return next(request, options);
    },
    tool: (request, options, next) => tools.around(request, () => next(request, options)),
  }));
  return observer();
}

/** The messages. Without anything new to say, a turn that was stopped in the middle of the reply is run again: the reply is given anew. */
function historyOf<State>(session: Session<State>, { message, resume }: AgentInput): readonly MessageData[] {
  const { messages } = viewOf(session);
  const last = messages.at(-1);
  return last && isPartial(last) && !message && !resume ? messages.slice(0, -1) : messages;
}

/** The tool requests that wait for the caller. Genkit's agents send them as a chunk of the role 'tool'. */
function interruptChunk(reply: MessageData): AgentStreamChunk {
  return { modelChunk: { role: 'tool', content: reply.content.filter((part) => part.toolRequest !== undefined) } };
}

/** Finds the prompt when it is first needed: it may be defined after the agent. */
function promptFinder({ registry, promptName }: PromptVoice): () => Promise<Render> {
  let found: PromptAction | undefined;
  return async () => {
    found ??= (await registry.lookupAction(`/prompt/${promptName}`)) as PromptAction | undefined;
    const prompt = found?.__executablePrompt;
    if (prompt) return (input, options) => (prompt.render as Render)(input, options);
    throw new GenkitError({
      status: 'NOT_FOUND',
      message: `Prompt '${promptName}' was not found. Define it before the agent's first turn.`,
    });
  };
}
