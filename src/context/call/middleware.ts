import { generateMiddleware } from '@genkit-ai/ai';
import { getAsyncContext, getContext } from '@genkit-ai/core';
import type { MessageData } from 'genkit';
import { sessionMessagesIn } from '../../session/log/preamble.ts';
import { noteRunningWindow, type RunningWindow } from '../../session/running-window.ts';
import { CURRENT_SESSION, type Session } from '../../session/session.ts';
import { noteContext } from '../../session/usage.ts';
import { checkOptions, isRecordStore, isText } from '../../store/check-options.ts';
import type { ContextWindow, WindowMiddlewareOptions, WindowScope } from '../types.ts';
import { WindowTurn, type WindowSetting } from './window-turn.ts';

/** A window and its conversation. It is passed as the middleware's configuration, with private members so that a trace shows none. */
class MiddlewareConfig {
  readonly #setting: WindowSetting;
  readonly #options: WindowMiddlewareOptions;

  constructor(setting: WindowSetting, options: WindowMiddlewareOptions) {
    this.#setting = setting;
    this.#options = options;
  }

  /**
   * Begins the work after the turn. In the turn of an agent it begins when that was saved, because a store may change the turn's messages.
   *
   * @param messages Those of the model call, with its reply.
   */
  afterTurn(turn: WindowTurn, messages: readonly MessageData[]): void {
    const session = this.#session();
    if (!session) void turn.afterTurn({ messages });
    else if (this.#setting.compaction) noteRunningWindow(session, this.#setting, withoutSnapshot(turn));
  }

  /** Notes the report of a model call for the snapshot of the turn, if the call is part of an agent's turn. */
  afterCall(turn: WindowTurn): void {
    const session = this.#session();
    if (session) noteContext(session, turn);
  }

  /** The session of the running turn, if it is this conversation. */
  #session(): Session | undefined {
    const session = getAsyncContext().getStore<Session>(CURRENT_SESSION);
    return session?.sessionId === this.#options.sessionId ? session : undefined;
  }

  open(registry: WindowScope['registry']): WindowTurn {
    return new WindowTurn(this.#setting, { ...this.#options, registry, context: getContext() });
  }
}

/** The middleware does not know the snapshot from which a turn continues, so it can't compare the one that was saved with it. */
function withoutSnapshot(turn: WindowTurn): RunningWindow {
  return { afterTurn: ({ messages, isForced }) => turn.afterTurn({ messages, isForced }) };
}

/** One middleware for all windows: a new name for each would slow down Genkit's registry. */
const define = generateMiddleware({ name: 'genkitx-agents-context' }, ({ config, ai }) => {
  let turn: WindowTurn | undefined;
  const conversation = config as unknown as MiddlewareConfig;
  // Opened in the first hook: Genkit has not set the context of the call before.
  const opened = () => (turn ??= conversation.open(ai.registry));
  let model: string | undefined;
  let said: MessageData[] = [];
  return {
    generate: async (envelope, context, next) => {
      model = envelope.request.model;
      const response = await next(envelope, context);
      // Later steps of a tool loop also come here, nested in the first one.
      if (envelope.currentTurn === 0 && response.message) {
        conversation.afterTurn(opened(), [...said, response.message]);
      }
      return response;
    },
    model: async (request, context, next) => {
      const origins = sessionMessagesIn(request.messages);
      said = origins.filter((message) => message !== undefined);
      const { abortSignal } = context;
      try {
        return await opened().call({ request, origins, model, abortSignal, next: (fitting) => next(fitting, context) });
      } finally {
        conversation.afterCall(opened());
      }
    },
  };
});

/** The window as an element of `use`. */
export function windowMiddleware(
  setting: WindowSetting,
  options: WindowMiddlewareOptions,
): ReturnType<ContextWindow['middleware']> {
  checkOptions('window.middleware', options, { sessionId: isText, records: isRecordStore });
  return define(new MiddlewareConfig(setting, options));
}
