import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { handOverRuns, type AgentsGenkit } from 'genkitx-agents';

/** What was stopped is saved, and its callers are told; how long that may take, in ms. */
const SAVING_MS = 2_000;

/** The requests that are being answered. */
export class OpenRequests {
  readonly #open = new Set<ServerResponse>();

  add(response: ServerResponse): void {
    this.#open.add(response);
    response.once('close', () => this.#open.delete(response));
  }

  /** Resolves when all are answered, those that came meanwhile too. */
  async answered(): Promise<void> {
    for (const response of this.#open) await once(response, 'close');
  }
}

export interface LeaveOptions {
  ai: AgentsGenkit;
  requests: OpenRequests;
  /** Given to the agents' router: stops the turns whose callers wait. */
  stop: AbortController;
  /** How long what runs may go on, in ms. */
  graceMs: number;
}

/**
 * What an instance does that is told to end. Turns go on for `graceMs`. Then those whose callers wait are stopped, and the callers told; those
 * in the background are handed over to the other instances. When this answers, the store can be closed.
 */
export async function leaveInTime({ ai, requests, stop, graceMs }: LeaveOptions): Promise<void> {
  const stopping = setTimeout(() => stop.abort(), graceMs);
  let giveUp: NodeJS.Timeout | undefined;
  const tooLate = new Promise((resolve) => (giveUp = setTimeout(resolve, graceMs + SAVING_MS)));
  await Promise.race([Promise.all([requests.answered(), handOverRuns(ai, { graceMs })]), tooLate]);
  clearTimeout(stopping);
  clearTimeout(giveUp);
}
