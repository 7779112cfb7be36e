import { logger } from 'genkit/logging';
import { describeThrown } from '../../errors.ts';
import type { AgentDefinition } from '../agent-definition.ts';

/**
 * Renews the lease of a background run every `heartbeatIntervalMs`, as long as the process lives.
 *
 * @param beat Writes one heartbeat. Not called while the one before is being written; an error is logged, and the next beat tries again.
 * @returns Stops it.
 */
export function startLeaseRenewal<State>(agent: AgentDefinition<State>, beat: () => Promise<void>): () => void {
  let isBeating = false;
  const timer = setInterval(() => {
    if (isBeating) return;
    isBeating = true;
    beat()
      .catch((error: unknown) => {
        logger.warn(
          `A heartbeat of agent '${agent.name}' could not be stored; it will be tried again. ${describeThrown(error)}`,
        );
      })
      .finally(() => (isBeating = false));
  }, agent.background.heartbeatIntervalMs);
  timer.unref();
  return () => clearInterval(timer);
}
