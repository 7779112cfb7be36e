/** Requests of the inspector's server. */
import type {
  InspectorError,
  InspectorFailure,
  InspectorReads,
  InspectorWrites,
} from '../../../../src/inspector/api.ts';

import { setConnection } from './connection.ts';

export type ReadName = keyof InspectorReads;
export type Asks<N extends ReadName> = InspectorReads[N]['asks'];
export type Answers<N extends ReadName> = InspectorReads[N]['answers'];

/** An error that the server answered. */
export class RequestError extends Error {
  readonly facts: InspectorError;

  constructor(facts: InspectorError) {
    super(facts.message);
    this.facts = facts;
  }
}

export function addressOf(name: string, asks: object): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(asks)) {
    if (value === undefined || value === '') continue;
    if (Array.isArray(value)) for (const one of value as string[]) query.append(key, one);
    else query.append(key, typeof value === 'object' ? JSON.stringify(value) : String(value));
  }
  return `api/${name}?${query}`;
}

export async function read<N extends ReadName>(name: N, asks: Asks<N>, signal?: AbortSignal): Promise<Answers<N>> {
  return answerOf(await request(addressOf(name, asks), { signal }));
}

export async function write<N extends keyof InspectorWrites>(
  name: N,
  body: InspectorWrites[N]['asks'],
): Promise<InspectorWrites[N]['answers']> {
  const headers = { 'content-type': 'application/json' };
  return answerOf(await request(`api/${name}`, { method: 'POST', headers, body: JSON.stringify(body) }));
}

/** Finds out whether the server answers: the error of a stream, or of a script that can't be loaded, does not say why. */
export async function checkConnection(): Promise<void> {
  await request('api/', {}).catch(() => {});
}

async function request(address: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(address, init);
    setConnection(response.status === 401 ? 'ended' : 'open');
    return response;
  } catch (error) {
    if (!init.signal?.aborted) setConnection('lost');
    throw error;
  }
}

async function answerOf<T>(response: Response): Promise<T> {
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && answer !== undefined) return answer as T;
  const { error } = (answer ?? {}) as Partial<InspectorFailure>;
  throw new RequestError(error ?? { status: `HTTP ${response.status}`, message: 'The server gave no valid answer.' });
}

/** Converts any error for the page. */
export function factsOf(error: unknown): InspectorError {
  if (error instanceof RequestError) return error.facts;
  return { status: 'UNAVAILABLE', message: 'The inspector’s server can’t be reached. Is it still running?' };
}
