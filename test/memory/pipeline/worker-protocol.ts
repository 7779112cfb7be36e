import type { MessageData } from 'genkit';

/** What a worker is told. */
export type WorkerOrder = 'learn one' | 'learn until killed';

/** More than are read before the last kill. */
export const SOURCES = 2_000;
export const USERS = 20;
export const TURNS = 12;
export const LIMITS = { leaseMs: 250, backOffMs: 1, maxBackOffMs: 10, maxAttempts: 5 };

/** The first messages of a source. */
export function conversation(source: number, turns: number): MessageData[] {
  return Array.from({ length: turns }, (_, i) => ({
    role: 'user',
    content: [{ text: `source${source} message${i} says` }],
  }));
}
