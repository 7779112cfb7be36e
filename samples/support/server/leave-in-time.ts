import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { handOverRuns, type AgentsGenkit } from 'genkitx-agents';

/** The time for saving stopped turns and answering their callers, in ms. */
const SAVING_MS = 2_000;

/** Counts the requests that are being answered. */
export class OpenRequests {
  readonly #open = new Set<ServerResponse>();

  add(response: ServerResponse): void {
    this.#open.add(response);
    response.once('close', () => this.#open.delete(response));
  }

  /** Resolves when all are answered, including requests that arrive meanwhile. */
  async answered(): Promise<void> {
    for (const response of this.#open) await once(response, 'close');
  }
}

export interface LeaveOptions {
  ai: AgentsGenkit;
  requests: OpenRequests;
  /** For the agents' router: stops the turns whose callers wait. */
  stop: AbortController;
  /** How long running turns may continue, in ms. */
  graceMs: number;
}

/**
 * Ends an instance. Running turns continue for `graceMs`. Then turns whose callers wait are stopped and answered, and background runs are
 * handed over to other instances. After this returns, the store can be closed.
 */
export async function leaveInTime({ ai, requests, stop, graceMs }: LeaveOptions): Promise<void> {
  const stopping = setTimeout(() => stop.abort(), graceMs);
  let giveUp: NodeJS.Timeout | undefined;
  const tooLate = new Promise((resolve) => (giveUp = setTimeout(resolve, graceMs + SAVING_MS)));
  await Promise.race([Promise.all([requests.answered(), handOverRuns(ai, { graceMs })]), tooLate]);
  clearTimeout(stopping);
  clearTimeout(giveUp);
}
