import { GenkitError, type Genkit, type GenerateRequest, type GenerateResponseData, type Part } from 'genkit';
import type { GenerateResponseChunkData, ModelAction } from 'genkit/model';

/** What the script can see and do while it answers a call. */
export interface ScriptedCall {
  /** The request, a copy. */
  request: GenerateRequest;
  /** Which call of the model this is, from 0 on. */
  index: number;
  /** Streams a chunk. */
  sendChunk: (chunk: GenerateResponseChunkData) => void;
  /** Fires when the call is to stop. */
  abortSignal: AbortSignal;
}

/** One answer of the model: a text, parts, a whole response, or a function that answers one of these (or throws). */
export type ScriptedReply =
  | string
  | Part[]
  | (GenerateResponseData & {
      /** Streamed before it. */
      chunks?: GenerateResponseChunkData[];
    })
  | ((call: ScriptedCall) => ScriptedReply | Promise<ScriptedReply>);

/** Options of {@link scriptedModel}. */
export interface ScriptedModelOptions {
  /** The model's name. Default: `scripted`. */
  name?: string;
  /** What it answers, one call after the other. */
  replies?: ScriptedReply[];
  /** The answer when the script is used up. Default: an error. */
  otherwise?: ScriptedReply;
}

/** A model that says what the script says, and remembers what it was asked. */
export interface ScriptedModel {
  /** For `model:` of an agent, a prompt or `ai.generate`. */
  readonly name: string;
  /** The model itself, as `ai.defineModel` answered it. */
  readonly action: ModelAction;
  /** Copies of all requests so far. */
  readonly requests: readonly GenerateRequest[];
  /** Appends to the script. */
  reply(...replies: ScriptedReply[]): void;
  /** Forgets the requests and the rest of the script. */
  reset(): void;
}

/**
 * Defines a model for tests: it replays a script, streams the chunks in it, and records its requests. No network, no chance.
 *
 * @example
 * const model = scriptedModel(ai, { replies: [[{ toolRequest: { name: 'lookUp', input: { id: 7 } } }], 'It is on its way.'] });
 * const agent = defineAgent(ai, { name: 'support', model: model.name, tools: [lookUp] });
 * const { text } = await agent.chat().send('Where is order 7?'); // 'It is on its way.'
 */
export function scriptedModel(ai: Genkit, options: ScriptedModelOptions = {}): ScriptedModel {
  const { name = 'scripted', otherwise } = options;
  const script = [...(options.replies ?? [])];
  const requests: GenerateRequest[] = [];
  const action = ai.defineModel(
    { apiVersion: 'v2', name, supports: { multiturn: true, tools: true, media: true, systemRole: true } },
    async (request, { sendChunk, abortSignal }) => {
      const index = requests.length;
      requests.push(structuredClone(request));
      const next = script.shift() ?? otherwise;
      if (next === undefined) {
        throw new GenkitError({
          status: 'FAILED_PRECONDITION',
          message: `The scripted model '${name}' has no reply for call ${index + 1}: add one to its script, or give 'otherwise'.`,
        });
      }
      const { chunks = [], ...response } = await settle(next, {
        request: structuredClone(request),
        index,
        sendChunk,
        abortSignal,
      });
      for (const chunk of chunks) sendChunk(chunk);
      return response;
    },
  );
  return {
    name,
    action,
    requests,
    reply: (...replies) => void script.push(...replies),
    reset: () => {
      script.length = 0;
      requests.length = 0;
    },
  };
}

async function settle(
  reply: ScriptedReply,
  call: ScriptedCall,
): Promise<GenerateResponseData & { chunks?: GenerateResponseChunkData[] }> {
  if (typeof reply === 'function') return settle(await reply(call), call);
  if (typeof reply === 'string') return settle([{ text: reply }], call);
  if (Array.isArray(reply)) return { message: { role: 'model', content: reply }, finishReason: 'stop' };
  return structuredClone(reply);
}
