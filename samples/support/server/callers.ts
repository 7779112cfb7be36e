import type { Request, RequestHandler, Response } from 'express';
import type { ActionContext } from 'genkit';
import { UserFacingError } from 'genkit';
import type { ContextProvider } from 'genkit/context';

/** Finds out who is calling, as the agents' router does, before any of the routes after it. */
export function authenticate(provider: ContextProvider): RequestHandler {
  return async (request, response, next) => {
    try {
      const { method, headers } = request;
      const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
      const context = await provider({ method: method as 'GET', headers: plain, input: undefined });
      if (typeof context !== 'object' || context === null) throw new Error('The context provider answered nothing.');
      response.locals['context'] = context;
      next();
    } catch (error) {
      next(error);
    }
  };
}

/** Who is calling, once {@link authenticate} knows. */
export function contextOf({ locals }: Response): ActionContext {
  return locals['context'] as ActionContext;
}

/** A query parameter, which may be there once. */
export function parameter({ query }: Request, name: string): string | undefined {
  const value = query[name];
  if (value === undefined || typeof value === 'string') return value;
  throw wrong(`${name} is there more than once.`);
}

export function wrong(message: string): UserFacingError {
  return new UserFacingError('INVALID_ARGUMENT', message);
}
