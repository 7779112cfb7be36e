import { generateMiddleware } from '@genkit-ai/ai';
import { getContext } from '@genkit-ai/core';
import { sessionMessagesIn } from '../../session/log/preamble.ts';
import type { TurnMemory } from '../../session/turn-memory.ts';
import { turnOf } from './memory-tools.ts';
import type { AttachedMemory } from './types.ts';

/**
 * The memory and the conversation, passed as the middleware's configuration. Its members are private, so that traces do not contain them.
 */
class MiddlewareConfig {
  readonly #openTurn: AttachedMemory['openTurn'];

  constructor(openTurn: AttachedMemory['openTurn']) {
    this.#openTurn = openTurn;
  }

  open(): TurnMemory {
    return this.#openTurn(turnOf(getContext()));
  }
}

/** One middleware for all memories, because a new name for each would slow down Genkit's registry. */
const define = generateMiddleware({ name: 'genkitx-agents-memory' }, ({ config }) => {
  let turn: TurnMemory | undefined;
  return {
    model: async (request, context, next) => {
      turn ??= (config as unknown as MiddlewareConfig).open();
      const { abortSignal } = context;
      return next(await turn.place({ request, origins: sessionMessagesIn(request.messages), abortSignal }), context);
    },
  };
});

/** Makes the element of `use` for a memory. */
export function memoryMiddleware(openTurn: AttachedMemory['openTurn']): ReturnType<AttachedMemory['middleware']> {
  return define(new MiddlewareConfig(openTurn));
}
