import type { ActionContext } from 'genkit';
import type { AgentInit } from 'genkit/beta';
import { textOf } from '../../session/log/transcript.ts';
import type { Session } from '../../session/session.ts';
import type { StartedSearch } from '../../session/turn-memory.ts';
import type { SessionRecord } from '../../store/contract.ts';
import { recordsOf, type AgentDefinition } from '../agent-definition.ts';
import type { Intake } from '../intake.ts';

/** Reads for the first turn of a call that begin with the read of its session, so that the turn does not wait for one after the other. */
export interface Prefetched {
  /** The summaries of the session. A store can read them together with the session. */
  readonly summaries: Promise<readonly SessionRecord[]> | undefined;
  /** The search for memories that fit the input. */
  readonly memories: Promise<StartedSearch | undefined> | undefined;
}

/** Reads of sessions without a turn yet. */
const prefetched = new WeakMap<object, Prefetched>();

interface Call {
  readonly init: AgentInit;
  readonly intake: Pick<Intake, 'first'>;
  readonly context: ActionContext | undefined;
  readonly abortSignal: AbortSignal;
}

/** Begins the reads. They never fail a call: their errors are reported by the turn that needs them. */
export function prefetch<State>(
  agent: AgentDefinition<State>,
  { init: { sessionId }, intake, context, abortSignal }: Call,
): Prefetched {
  const { window, memory, isPromptAgent } = agent;
  const summaries =
    sessionId === undefined ? undefined : window?.prefetch({ sessionId, context, records: recordsOf(agent) });
  // Marks the rejection as handled: the turn may fail before this read does.
  summaries?.catch(() => {});
  const memories =
    isPromptAgent && memory
      ? intake
          .first()
          .then((input) =>
            input?.message?.role === 'user'
              ? memory.prefetch({ sessionId, context, text: textOf(input.message), abortSignal })
              : undefined,
          )
      : undefined;
  return { summaries, memories };
}

/** Keeps the reads for the first turn of the session. */
export function keepPrefetched<State>(session: Session<State>, reads: Prefetched): void {
  if (reads.summaries || reads.memories) prefetched.set(session, reads);
}

/** Returns the reads that were kept; `undefined` for none, or if a turn has taken them. */
export function takePrefetched<State>(session: Session<State>): Prefetched | undefined {
  const reads = prefetched.get(session);
  prefetched.delete(session);
  return reads;
}
