import { generateMiddleware, z, type MiddlewareRef } from 'genkit';

/** The address where Ollama listens by default. */
const DEFAULT_ADDRESS = 'http://127.0.0.1:11434';
const PROBE_TIMEOUT_MS = 700;

export interface OllamaChoice {
  name: string;
  serverAddress: string;
}

const TagsSchema = z.object({ models: z.array(z.object({ name: z.string() })) });
const ShowSchema = z.object({ capabilities: z.array(z.string()).optional() });

/** The most recently installed model that can use tools; `undefined` if no Ollama answers, or no model can. */
export async function findOllamaModel(serverAddress = DEFAULT_ADDRESS): Promise<OllamaChoice | undefined> {
  try {
    const { models } = TagsSchema.parse(await ask(`${serverAddress}/api/tags`));
    for (const { name } of models) {
      const { capabilities } = ShowSchema.parse(await ask(`${serverAddress}/api/show`, { model: name }));
      if (capabilities?.includes('tools')) return { name, serverAddress };
    }
  } catch {
    // No server answers, or it is not Ollama.
  }
  return undefined;
}

/** The Ollama plugin drops tool requests when it streams. So this requests whole replies, and passes each on as one chunk. */
export function withoutStreaming(): MiddlewareRef {
  const middleware = generateMiddleware({ name: 'withoutStreaming' }, () => ({
    model: async (request, options, next) => {
      const response = await next(request, { ...options, onChunk: undefined });
      if (response.message) options.onChunk?.({ role: 'model', content: response.message.content });
      return response;
    },
  }));
  return middleware();
}

async function ask(url: string, body?: unknown): Promise<unknown> {
  const response = await fetch(url, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`${url} answers ${response.status}.`);
  return response.json();
}
