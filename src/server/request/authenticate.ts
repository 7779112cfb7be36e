import type { ActionContext } from 'genkit';
import type { RequestData } from 'genkit/context';
import { isPlainObject } from '../../json/fault.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import type { IncomingCall } from './call.ts';
import type { ServerSettings } from '../options.ts';
import { Refusal } from '../answer/refusal.ts';

/**
 * Calls the context provider to identify the caller.
 *
 * @param body The `data` of the body, if it was read before (`contextReadsInput`).
 * @throws the error of the provider; Error when it does not return a plain object; Refusal 504 when it does not settle within `timeoutMs`.
 */
export async function authenticate(
  { headers }: IncomingCall,
  { context: provider, timeoutMs }: ServerSettings,
  body?: { data: unknown },
): Promise<ActionContext> {
  const request = body ? { method: 'POST' as const, headers, input: body.data } : unreadRequest(headers);
  const tooSlow = () =>
    new Refusal(504, 'DEADLINE_EXCEEDED', `The "context" function did not answer within ${timeoutMs} ms.`);
  const context = await withinTime(tooSlow, timeoutMs, undefined, async (): Promise<unknown> => provider(request));
  if (!isPlainObject(context)) {
    // A forgotten `return` must not authenticate a caller.
    throw new Error(
      `The option "context" returned ${describe(context)}, so the request was refused. Return a plain object ` +
        '({} for a caller without an identity); to refuse a request, throw a UserFacingError.',
    );
  }
  return context;
}

/** Reading `input` throws, so that no provider decides by a missing input. Not enumerable, so that the request can be copied. */
function unreadRequest(headers: Record<string, string>): RequestData {
  const request = { method: 'POST', headers };
  Object.defineProperty(request, 'input', {
    get: () => {
      throw new Error(
        'The option "context" read "input", but it is called before the body is read. ' +
          'Decide by the headers, or set "contextReadsInput: true".',
      );
    },
  });
  return request as RequestData;
}

/** Names the type of the value, not the value itself: it may be a credential. */
function describe(value: unknown): string {
  if (value === undefined || value === null || typeof value === 'boolean') {
    return String(value);
  }
  if (typeof value !== 'object') {
    return `a ${typeof value}`;
  }
  return Array.isArray(value) ? 'an array' : 'an object that is not plain';
}
