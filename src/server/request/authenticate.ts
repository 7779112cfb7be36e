import type { ActionContext } from 'genkit';
import type { RequestData } from 'genkit/context';
import { isPlain } from '../../json/fault.ts';
import type { IncomingCall } from './call.ts';
import type { ServerSettings } from '../options.ts';
import { Refusal } from '../answer/refusal.ts';
import { within } from '../within.ts';

/**
 * Asks the context provider who is calling.
 *
 * @param body The `data` of the body, where it was read before (`contextReadsInput`).
 * @throws whatever the provider throws; Error when it answers anything but a plain object; Refusal 504 when it does not answer within `timeoutMs`.
 */
export async function authenticate(
  { headers }: IncomingCall,
  { context: provider, timeoutMs }: ServerSettings,
  body?: { data: unknown },
): Promise<ActionContext> {
  const request = body ? { method: 'POST' as const, headers, input: body.data } : unreadRequest(headers);
  const asking = async (): Promise<unknown> => provider(request);
  const context = await within(
    timeoutMs,
    asking(),
    () => new Refusal(504, 'DEADLINE_EXCEEDED', `Who is calling was not found out within ${timeoutMs} ms.`),
  );
  if (typeof context !== 'object' || context === null || Array.isArray(context) || !isPlain(context)) {
    // A forgotten `return` must not let anybody in.
    throw new Error(
      `The option "context" answered ${describe(context)}, so the request was not served. Answer a plain object ` +
        '({} for a caller without an identity); to turn a request down, throw a UserFacingError.',
    );
  }
  return context;
}

/** Fails closed: a provider that judges by the input must not judge by `undefined`. Not enumerable, so that the request can be copied. */
function unreadRequest(headers: Record<string, string>): RequestData {
  const request = { method: 'POST', headers };
  Object.defineProperty(request, 'input', {
    get: () => {
      throw new Error(
        'The option "context" read "input", but it is asked before the body is read. ' +
          'Judge by the headers, or set "contextReadsInput: true".',
      );
    },
  });
  return request as RequestData;
}

/** Never the value itself: it may be a credential. */
function describe(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'boolean') {
    return String(value);
  }
  if (typeof value !== 'object') {
    return `a ${typeof value}`;
  }
  return Array.isArray(value) ? 'an array' : 'an object that is not plain';
}
