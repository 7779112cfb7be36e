import type { ActionContext } from 'genkit';
import type { AgentInit, AgentInput, AgentOutput } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import { definedAgents } from '../../agent/defined-agents.ts';
import { callerAs } from '../../agent/open/agent-scopes.ts';
import { interruptsOf } from '../../client/chat/interrupt.ts';
import { failedPrecondition, invalidArgument, notFound, quote } from '../../errors.ts';
import type { ServedAction, ServedAgents } from '../../server/request/routes.ts';
import { logOf } from '../../session/log/session-log.ts';
import type { SessionSnapshot } from '../../snapshot/snapshot.ts';
import type { ForkResult } from '../api.ts';
import { storedError } from '../http/answers.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';

/** The agents that may continue from a snapshot, by name. */
export async function agentsOf(agents: ServedAgents | undefined): Promise<ReadonlyMap<string, ServedAction>> {
  if (agents === undefined) return new Map();
  if ('registry' in agents && typeof agents.registry === 'object') {
    const actions = await (agents.registry as unknown as Registry).listActions();
    const keys = Object.keys(actions).filter((key) => key.startsWith('/agent/'));
    return new Map(keys.map((key) => [key.slice('/agent/'.length), actions[key] as unknown as ServedAction]));
  }
  const list = Object.values(agents as Record<string, ServedAction>);
  return new Map(list.map((agent) => [agent.__action.name, agent]));
}

/** Runs a turn from a snapshot on, as the session's owner. Resolves when it has ended. */
export async function fork(source: Source, params: Params, signal: AbortSignal): Promise<ForkResult> {
  const name = params.mustText('agent');
  const agents = await agentsOf(source.options.agents);
  const agent = agents.get(name);
  if (!agent)
    throw notFound(`The inspector has no agent ${quote(name)}; it has ${[...agents.keys()].join(', ') || 'none'}.`);
  const [snapshotId, model] = [params.text('snapshotId'), params.text('model')];
  const text = params.text('text')?.trim() || undefined;
  const answer = params.oneOf('answer', 'approve', 'deny');
  const from = snapshotId === undefined ? undefined : await source.mustRead({ snapshotId });
  if (answer === undefined && text === undefined && from?.status !== 'aborted') {
    throw invalidArgument('text is missing: only an aborted turn runs again without a message.');
  }
  const userId = from && logOf(from).owner?.userId;
  const input: AgentInput & { model?: string } = {
    ...(answer === undefined
      ? text !== undefined && { message: { role: 'user', content: [{ text }] } }
      : { resume: answerAll(from, answer, text) }),
    ...(model !== undefined && { model }),
  };
  const init: AgentInit = snapshotId === undefined ? {} : { snapshotId };
  const context = userId === undefined ? source.caller.context : contextAs(agent, name, userId, source.caller.context);
  const { result } = await agent.run(input, { init, context: context ?? {}, abortSignal: signal });
  const { snapshotId: saved, finishReason, error } = result as AgentOutput;
  return {
    // A failed turn returns the snapshot before, from which the conversation can continue.
    snapshotId: saved === snapshotId ? undefined : saved,
    finishReason,
    error: error && storedError(error),
  };
}

/** Gives all waiting tools of a snapshot the same answer. */
function answerAll(
  from: SessionSnapshot | undefined,
  answer: 'approve' | 'deny',
  text = 'The user did not allow this.',
): AgentInput['resume'] {
  const waiting = interruptsOf(from?.state?.messages?.at(-1));
  if (waiting.length === 0) throw failedPrecondition('No tool waits for an answer in this snapshot.');
  return answer === 'approve'
    ? { restart: waiting.map((interrupt) => interrupt.restart()) }
    : { respond: waiting.map((interrupt) => interrupt.respond(text)) };
}

/** A context that acts for the owner of a session: agents hide sessions from other users. */
function contextAs(
  action: ServedAction,
  name: string,
  userId: string,
  context: ActionContext | undefined,
): ActionContext | undefined {
  const { __registry: registry } = action as { readonly __registry?: Registry };
  const defined = registry && definedAgents(registry).find(({ agent }) => agent.name === name);
  return defined ? callerAs(defined.agent, context, userId).context : context;
}
