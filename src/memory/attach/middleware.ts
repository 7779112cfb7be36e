import { generateMiddleware } from '@genkit-ai/ai';
import { getContext } from '@genkit-ai/core';
import { sessionMessagesIn } from '../../session/log/preamble.ts';
import type { TurnMemory } from '../../session/turn-memory.ts';
import { turnOf } from './memory-tools.ts';
import type { AttachedMemory } from './types.ts';

/** A memory and its conversation. It is passed as the middleware's configuration, with private members so that a trace shows none. */
class MiddlewareConfig {
  readonly #openTurn: AttachedMemory['openTurn'];

  constructor(openTurn: AttachedMemory['openTurn']) {
    this.#openTurn = openTurn;
  }

  open(): TurnMemory {
    return this.#openTurn(turnOf(getContext()));
  }
}

/** One middleware for all memories: a new name for each would slow down Genkit's registry. */
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

/** The memory as an element of `use`. */
export function memoryMiddleware(openTurn: AttachedMemory['openTurn']): ReturnType<AttachedMemory['middleware']> {
  return define(new MiddlewareConfig(openTurn));
}
