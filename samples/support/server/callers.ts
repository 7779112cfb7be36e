import type { Request, RequestHandler, Response } from 'express';
import type { ActionContext } from 'genkit';
import { UserFacingError } from 'genkit';
import type { ContextProvider } from 'genkit/context';

/** Authenticates the caller before all later routes, like the agents' router. */
export function authenticate(provider: ContextProvider): RequestHandler {
  return async (request, response, next) => {
    try {
      const { method, headers } = request;
      const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
      const context = await provider({ method: method as 'GET', headers: plain, input: undefined });
      if (typeof context !== 'object' || context === null) throw new Error('The context provider returned no context.');
      response.locals['context'] = context;
      next();
    } catch (error) {
      next(error);
    }
  };
}

/** The caller, after {@link authenticate}. */
export function contextOf({ locals }: Response): ActionContext {
  return locals['context'] as ActionContext;
}

/** A query parameter. It may occur once. */
export function parameter({ query }: Request, name: string): string | undefined {
  const value = query[name];
  if (value === undefined || typeof value === 'string') return value;
  throw wrong(`${name} occurs more than once.`);
}

export function wrong(message: string): UserFacingError {
  return new UserFacingError('INVALID_ARGUMENT', message);
}
