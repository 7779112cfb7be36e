/** Exit codes. */
export const OK = 0;
/** The work found problems, or failed. */
export const PROBLEMS = 1;
/** The arguments of the command are wrong. */
export const WRONG_USE = 2;

/** The arguments of the command are wrong; the message says what to pass. */
export class WrongUse extends Error {}

/** The work found problems; the message says which. */
export class Problem extends Error {}

/** Converts an error to a sentence for the terminal and an exit code. */
export function explain(error: unknown): { readonly message: string; readonly code: number } {
  const { status, message = String(error) } = (error ?? {}) as { status?: unknown; message?: string };
  const isWrongUse = error instanceof WrongUse || status === 'INVALID_ARGUMENT';
  // Genkit's errors begin with their status.
  const text = typeof status === 'string' ? message.replace(`${status}: `, '') : message;
  return { message: text, code: isWrongUse ? WRONG_USE : PROBLEMS };
}
