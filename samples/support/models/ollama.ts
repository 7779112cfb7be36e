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

/** An installed model that can use tools, the most recently installed first; `undefined` when no Ollama answers or none can. */
export async function findOllamaModel(serverAddress = DEFAULT_ADDRESS): Promise<OllamaChoice | undefined> {
  try {
    const { models } = TagsSchema.parse(await ask(`${serverAddress}/api/tags`));
    for (const { name } of models) {
      const { capabilities } = ShowSchema.parse(await ask(`${serverAddress}/api/show`, { model: name }));
      if (capabilities?.includes('tools')) return { name, serverAddress };
    }
  } catch {
    // Nothing there, or something that is not Ollama.
  }
  return undefined;
}

/** The Ollama plugin drops tool requests when it streams, so its replies are asked for whole and passed on as one chunk. */
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
