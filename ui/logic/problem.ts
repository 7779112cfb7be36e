import { AgentError } from 'genkitx-agents/client';

/** An error, for the user of the page. */
export interface ProblemFacts {
  /** A sentence. */
  text: string;
  /** The id of the error in the server's log. */
  errorId?: string;
}

export function problemOf(error: unknown): ProblemFacts {
  const { errorId } = ((AgentError.isInstance(error) && error.details) || {}) as { errorId?: string };
  return { text: sentenceFor(error), ...(errorId && { errorId }) };
}

export function sentenceFor(error: unknown): string {
  const text = (error as { message?: string } | undefined)?.message ?? String(error);
  if (error instanceof TypeError || /failed to fetch|network/i.test(text)) return 'The server can’t be reached.';
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
