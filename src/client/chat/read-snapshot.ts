import { AgentError } from '../errors.ts';
import { interruptsOf } from './interrupt.ts';
import type { AgentTransport, TransportRead } from '../transport.ts';
import type { AgentSnapshot, SessionSnapshot, SnapshotLookup } from '../types.ts';

/** Adds the waiting tool requests to a snapshot. */
export function withInterrupts<State>(snapshot: SessionSnapshot<State>): AgentSnapshot<State> {
  const get = () => interruptsOf(snapshot.state?.messages?.at(-1));
  return Object.defineProperty({ ...snapshot }, 'interrupts', { get }) as AgentSnapshot<State>;
}

/** @throws AgentError `NOT_FOUND` when there is no such snapshot. */
export async function mustGetSnapshot<State>(
  transport: AgentTransport,
  lookup: SnapshotLookup,
  options?: TransportRead,
): Promise<AgentSnapshot<State>> {
  const snapshot = await transport.getSnapshot(lookup, options);
  if (!snapshot) {
    const what = 'snapshotId' in lookup ? `snapshot ${lookup.snapshotId}` : `session ${lookup.sessionId}`;
    throw new AgentError({ status: 'NOT_FOUND', message: `There is no ${what}.` });
  }
  return withInterrupts(snapshot as SessionSnapshot<State>);
}
