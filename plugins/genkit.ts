import type { z } from 'genkit';
import {
  GenkitBeta,
  type AgentFn as GenkitAgentFn,
  type GenkitBetaOptions,
  type Session as GenkitSession,
} from 'genkit/beta';
import { defineAgent, defineCustomAgent, definePromptAgent } from '../src/agent/define/define-agent.ts';
import type {
  Agent,
  AgentConfig,
  AgentFn,
  CustomAgentConfig,
  OutputOf,
  PromptAgentConfig,
  WithStateSchema,
} from '../src/agent/types.ts';
import type { Session } from '../src/session/session.ts';
import { guardTemplates } from '../src/session/template-text.ts';
import type { ScopeRecord } from '../src/store/contract.ts';

/**
 * Genkit's own `genkit()` of `genkit/beta`, but `defineAgent`, `definePromptAgent` and `defineCustomAgent` of the instance are those of
 * this package: an application written for `genkit/beta` moves by changing that one import.
 *
 * @example
 * import { genkit } from 'genkitx-agents';
 *
 * const ai = genkit({ plugins: [googleAI()] });
 * const support = ai.defineAgent({ name: 'support', model: 'googleai/gemini-2.5-flash', system: 'Help.' });
 */
export function genkit(options: GenkitBetaOptions = {}): AgentsGenkit {
  const ai = new AgentsGenkit(options);
  guardTemplates(ai.registry);
  return ai;
}

/** The instance that {@link genkit} returns. */
export class AgentsGenkit extends GenkitBeta {
  /** `defineAgent` of this package, in this instance. */
  override defineAgent<State, I extends z.ZodTypeAny = z.ZodTypeAny, O extends z.ZodTypeAny = z.ZodTypeAny>(
    config: WithStateSchema<State, AgentConfig<NoInfer<State>, I, O>>,
  ): Agent<State, OutputOf<O>>;
  override defineAgent<State = unknown, I extends z.ZodTypeAny = z.ZodTypeAny, O extends z.ZodTypeAny = z.ZodTypeAny>(
    config: AgentConfig<State, I, O>,
  ): Agent<State, OutputOf<O>>;
  override defineAgent<State, I extends z.ZodTypeAny, O extends z.ZodTypeAny>(
    config: AgentConfig<State, I, O>,
  ): Agent<State, OutputOf<O>> {
    return defineAgent<State, I, O>(this.registry, config);
  }

  /** `definePromptAgent` of this package, in this instance. */
  override definePromptAgent<State, I extends z.ZodTypeAny = z.ZodTypeAny, O extends z.ZodTypeAny = z.ZodTypeAny>(
    config: WithStateSchema<State, PromptAgentConfig<NoInfer<State>, I>>,
  ): Agent<State, OutputOf<O>>;
  override definePromptAgent<
    State = unknown,
    I extends z.ZodTypeAny = z.ZodTypeAny,
    O extends z.ZodTypeAny = z.ZodTypeAny,
  >(config: PromptAgentConfig<State, I>): Agent<State, OutputOf<O>>;
  override definePromptAgent<State, I extends z.ZodTypeAny, O extends z.ZodTypeAny>(
    config: PromptAgentConfig<State, I>,
  ): Agent<State, OutputOf<O>> {
    return definePromptAgent<State, I, O>(this.registry, config);
  }

  /** `defineCustomAgent` of this package, in this instance. It also takes a function of the type of Genkit's own `AgentFn`. */
  override defineCustomAgent<State, User = ScopeRecord, App = ScopeRecord>(
    config: WithStateSchema<State, CustomAgentConfig<NoInfer<State>, User, App>>,
    fn: AgentFn<NoInfer<State>, NoInfer<User>, NoInfer<App>>,
  ): Agent<State>;
  override defineCustomAgent<State = unknown, User = ScopeRecord, App = ScopeRecord>(
    config: CustomAgentConfig<State, User, App>,
    fn: AgentFn<State, NoInfer<User>, NoInfer<App>>,
  ): Agent<State>;
  override defineCustomAgent<State = unknown>(config: CustomAgentConfig<State>, fn: GenkitAgentFn<State>): Agent<State>;
  override defineCustomAgent<State, User, App>(
    config: CustomAgentConfig<State, User, App>,
    fn: AgentFn<State, User, App> | GenkitAgentFn<State>,
  ): Agent<State> {
    return defineCustomAgent<State, User, App>(this.registry, config, fn as AgentFn<State, User, App>);
  }

  /**
   * The session of the running turn, with its `state`. The type arguments are the types of the plain state, of the `user:` keys, and of the
   * `app:` keys. In an agent that Genkit itself defined, the session is Genkit's, which has no such `state`.
   *
   * @throws SessionError outside of a turn.
   */
  override currentSession<S = unknown, User = ScopeRecord, App = ScopeRecord>(): Session<S, User, App>;
  // `state` of Genkit's session has a private type, so no session with a public `state` is assignable to it.
  override currentSession<S>(): GenkitSession<S>;
  override currentSession(): unknown {
    return super.currentSession();
  }
}
