/** The types fit those of the neighbours: Genkit's client, Genkit's agents, Express. */
import type { RequestHandler } from 'express';
import type { Agent as GenkitAgent, GenkitBeta } from 'genkit/beta';
import type * as theirs from 'genkit/beta/client';
import type { Agent } from 'genkitx-agents';
import { remoteAgent, type AgentError } from 'genkitx-agents/client';
import type * as ours from 'genkitx-agents/client';
import type { AgentRouter, ServedAgent, ServedAgents } from 'genkitx-agents/server';
import { describe, expectTypeOf, it } from 'vitest';

interface State {
  count: number;
}

describe('types', () => {
  it('of the client are assignable to Genkit’s', () => {
    expectTypeOf(remoteAgent<State>).returns.toExtend<theirs.AgentAPI<State>>();
    expectTypeOf<ours.AgentChat<State>>().toExtend<theirs.AgentChat<State>>();
    expectTypeOf<ours.AgentTurn<State>>().toExtend<theirs.AgentTurn<State>>();
    expectTypeOf<ours.AgentResponse<State>>().toExtend<theirs.AgentResponse<State>>();
    expectTypeOf<ours.DetachedTask<State>>().toExtend<theirs.DetachedTask<State>>();
    expectTypeOf<ours.AgentInterrupt>().toExtend<theirs.AgentInterrupt>();
    expectTypeOf<AgentError<State>>().toExtend<theirs.AgentError<State>>();
    expectTypeOf<theirs.RemoteAgentOptions>().toExtend<ours.RemoteAgentOptions>();
  });

  it('of agents, ours and Genkit’s, are those that can be served', () => {
    expectTypeOf<Agent<State>>().toExtend<ServedAgent>();
    expectTypeOf<GenkitAgent<State>>().toExtend<ServedAgent>();
    expectTypeOf<[Agent<State>, GenkitAgent]>().toExtend<ServedAgents>();
    expectTypeOf<{ support: Agent<State> }>().toExtend<ServedAgents>();
    expectTypeOf<GenkitBeta>().toExtend<ServedAgents>();
  });

  it('of the router fit Express', () => {
    expectTypeOf<AgentRouter>().toExtend<RequestHandler>();
  });
});
