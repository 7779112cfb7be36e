/** The types fit those of Genkit's client, Genkit's agents and Express. */
import type { RequestHandler } from 'express';
import type { GenerationUsage } from 'genkit';
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

  it('of the wire format are Genkit’s, both ways', () => {
    expectTypeOf<ours.Part>().toExtend<theirs.Part>();
    expectTypeOf<theirs.Part>().toExtend<ours.Part>();
    expectTypeOf<ours.ToolRequestPart>().toExtend<theirs.ToolRequestPart>();
    expectTypeOf<theirs.ToolRequestPart>().toExtend<ours.ToolRequestPart>();
    expectTypeOf<ours.ToolResponsePart>().toExtend<theirs.ToolResponsePart>();
    expectTypeOf<theirs.ToolResponsePart>().toExtend<ours.ToolResponsePart>();
    expectTypeOf<ours.MessageData>().toExtend<theirs.MessageData>();
    expectTypeOf<theirs.MessageData>().toExtend<ours.MessageData>();
    expectTypeOf<ours.Artifact>().toExtend<theirs.Artifact>();
    expectTypeOf<theirs.Artifact>().toExtend<ours.Artifact>();
    expectTypeOf<ours.AgentInit<State>>().toExtend<theirs.AgentInit<State>>();
    expectTypeOf<theirs.AgentInit<State>>().toExtend<ours.AgentInit<State>>();
    expectTypeOf<ours.AgentInput>().toExtend<theirs.AgentInput>();
    expectTypeOf<theirs.AgentInput>().toExtend<ours.AgentInput>();
    expectTypeOf<ours.AgentOutput<State>>().toExtend<theirs.AgentOutput<State>>();
    expectTypeOf<theirs.AgentOutput<State>>().toExtend<ours.AgentOutput<State>>();
    expectTypeOf<ours.AgentStreamChunk>().toExtend<theirs.AgentStreamChunk>();
    expectTypeOf<theirs.AgentStreamChunk>().toExtend<ours.AgentStreamChunk>();
    expectTypeOf<ours.AgentChunk<State>>().toExtend<theirs.AgentChunk<State>>();
    expectTypeOf<ours.SessionSnapshot<State>>().toExtend<theirs.SessionSnapshot<State>>();
    expectTypeOf<theirs.SessionSnapshot<State>>().toExtend<ours.SessionSnapshot<State>>();
    expectTypeOf<number>().not.toExtend<ours.Part>();
    // A member that is missing here is one that callers can't set, or don't see.
    expectTypeOf<keyof ours.AgentStreamChunk>().toEqualTypeOf<keyof theirs.AgentStreamChunk>();
    expectTypeOf<keyof ours.AgentInput>().toEqualTypeOf<keyof theirs.AgentInput>();
    expectTypeOf<keyof ours.AgentInit>().toEqualTypeOf<keyof theirs.AgentInit>();
    expectTypeOf<keyof ours.AgentOutput>().toEqualTypeOf<keyof theirs.AgentOutput | 'usage'>();
    expectTypeOf<keyof ours.MessageData>().toEqualTypeOf<keyof theirs.MessageData>();
    expectTypeOf<keyof ours.Artifact>().toEqualTypeOf<keyof theirs.Artifact>();
    expectTypeOf<keyof ours.SessionSnapshot>().toEqualTypeOf<
      keyof theirs.SessionSnapshot | 'usage' | 'summaryUsage' | 'contextReport'
    >();
    expectTypeOf<ours.ModelUsage>().toEqualTypeOf<Omit<GenerationUsage, 'custom'>>();
    expectTypeOf<keyof ours.AgentChunk>().toEqualTypeOf<keyof theirs.AgentChunk | 'output'>();
    expectTypeOf<ours.AgentFinishReason>().toEqualTypeOf<theirs.AgentFinishReason>();
    expectTypeOf<keyof theirs.AgentChat>().toExtend<keyof ours.AgentChat>();
    expectTypeOf<keyof theirs.AgentResponse>().toExtend<keyof ours.AgentResponse>();
    expectTypeOf<keyof theirs.AgentInterrupt>().toExtend<keyof ours.AgentInterrupt>();
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
