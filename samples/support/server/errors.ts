import type { ErrorRequestHandler, RequestHandler } from 'express';
import { GenkitError } from 'genkit';

export const notFound: RequestHandler = (request, response) => {
  response.status(404).json({ status: 'NOT_FOUND', message: `There is nothing at ${request.method} ${request.path}.` });
};

/** Mistakes of the caller, found by the store, this server's code or Express. They are sent to the caller, and not logged. */
export const callersError: ErrorRequestHandler = (error, _request, response, next) => {
  const { status, code, message } = mistake(error) ?? {};
  if (!code || response.headersSent) next(error);
  else response.status(code).json({ status, message });
};

/** Logs the error. The caller only gets a general message. */
export const internalError: ErrorRequestHandler = (error, _request, response, next) => {
  console.error(error);
  if (response.headersSent) next(error);
  else response.status(500).json({ status: 'INTERNAL', message: "Something went wrong; the server's log says what." });
};

interface Mistake {
  status: string;
  /** The HTTP status, 400 to 499. */
  code: number;
  message: string;
}

function mistake(error: unknown): Mistake | undefined {
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  const found =
    error instanceof GenkitError
      ? { status: error.status, code: error.code, message: error.originalMessage }
      : {
          status: 'INVALID_ARGUMENT',
          code: Number(statusCode),
          message: 'The server does not understand the request.',
        };
  return found.code >= 400 && found.code < 500 ? found : undefined;
}
