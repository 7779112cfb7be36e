import { generateMiddleware } from '@genkit-ai/ai';
import { getContext } from '@genkit-ai/core';
import type { MessageData } from 'genkit';
import type { TurnMemory } from '../../session/turn-memory.ts';
import { checkOptions, type OptionCheck } from '../../store/check-options.ts';
import { turnOf } from './memory-tools.ts';
import type { AttachedMemory, MemoryMiddlewareOptions } from './types.ts';

/** Genkit's agents, and ours, mark the messages of the prompt with it. */
const PREAMBLE_TAG = 'agentPreamble';

const isId: OptionCheck = (value) =>
  typeof value === 'string' && value.trim() !== '' ? undefined : 'a text that is not blank';

/** A memory and its conversation. It is passed as the middleware's configuration, with private members so that a trace shows none. */
class Use {
  readonly #openTurn: AttachedMemory['openTurn'];
  readonly #options: MemoryMiddlewareOptions;

  constructor(openTurn: AttachedMemory['openTurn'], options: MemoryMiddlewareOptions) {
    this.#openTurn = openTurn;
    this.#options = options;
  }

  open(): TurnMemory {
    return this.#openTurn({ ...turnOf(getContext()), ...this.#options });
  }
}

/** One middleware for all memories: a new name for each would slow down Genkit's registry. */
const define = generateMiddleware({ name: 'genkitx-agents-memory' }, ({ config }) => {
  let turn: TurnMemory | undefined;
  return {
    model: async (request, context, next) => {
      turn ??= (config as unknown as Use).open();
      const { abortSignal } = context;
      return next(await turn.place({ request, origins: originsOf(request.messages), abortSignal }), context);
    },
  };
});

/** The memory as an element of `use`. */
export function memoryMiddleware(
  openTurn: AttachedMemory['openTurn'],
  options: MemoryMiddlewareOptions,
): ReturnType<AttachedMemory['middleware']> {
  checkOptions('memory.middleware', options, { sessionId: isId });
  return define(new Use(openTurn, options));
}

/** The session's messages in a request: `undefined` for messages of the prompt and for system messages at the beginning. */
function originsOf(messages: readonly MessageData[]): (MessageData | undefined)[] {
  const start = messages.findIndex(({ role }) => role !== 'system');
  return messages.map((message, i) =>
    start < 0 || i < start || message.metadata?.[PREAMBLE_TAG] ? undefined : message,
  );
}
