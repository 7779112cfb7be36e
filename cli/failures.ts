/** Exit codes. */
export const OK = 0;
/** The work found problems, or failed. */
export const PROBLEMS = 1;
/** The command was given what it can't take. */
export const WRONG_USE = 2;

/** The command was given what it can't take; the message says what to give. */
export class WrongUse extends Error {}

/** The work found problems; the message says which. */
export class Problem extends Error {}

/** What an error comes to: a sentence for the terminal, and the exit code. */
export function explain(error: unknown): { readonly message: string; readonly code: number } {
  const { status, message = String(error) } = (error ?? {}) as { status?: unknown; message?: string };
  const isWrongUse = error instanceof WrongUse || status === 'INVALID_ARGUMENT';
  // Genkit's errors begin with their status.
  const text = typeof status === 'string' ? message.replace(`${status}: `, '') : message;
  return { message: text, code: isWrongUse ? WRONG_USE : PROBLEMS };
}
