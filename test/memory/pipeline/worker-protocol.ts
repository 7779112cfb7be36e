import type { MessageData } from 'genkit';
import { scale } from '../../support/scale.ts';

/**
 * The commands for a worker. `learn one, slowly`: the first calls of the model do not end, so that their processes can be killed during the
 * call.
 */
export type WorkerOrder = 'learn one' | 'learn one, slowly' | 'corroborate' | 'learn until killed';

/** The number of model calls that do not end. */
export const SLOW_CALLS = scale(2, 4);

/** The number of sources in each process that state the same fact. */
export const CORROBORATIONS = 25;

/** The number of sources. More than are read before the last kill. */
export const SOURCES = 2_000;
export const USERS = 20;
export const TURNS = 12;
/**
 * The time for which a killed worker holds a job, and in which a living worker must renew its lease. With `learn one, slowly` the test adds
 * a byte to `passed-leases` after each kill; each byte moves the workers' clock forward by one lease. A short lease would expire in living
 * workers on a busy machine.
 */
export const LEASE_MS: Readonly<Record<WorkerOrder, number>> = {
  'learn one': 60_000,
  'learn one, slowly': 60_000,
  corroborate: 60_000,
  'learn until killed': 250,
};
export const LIMITS = { backOffMs: 1, maxBackOffMs: 10, maxAttempts: 5 };

/** The first messages of a source. */
export function conversation(source: number, turns: number): MessageData[] {
  return Array.from({ length: turns }, (_, i) => ({
    role: 'user',
    content: [{ text: `source${source} message${i} says` }],
  }));
}
