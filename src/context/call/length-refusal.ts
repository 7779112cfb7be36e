/** Errors of providers for a request that is too long: Gemini, OpenAI and compatible ones, Anthropic, Ollama, xAI, Groq, Cohere. */
const LENGTH_REFUSALS = [
  /input token count .*exceeds the maximum/i,
  /exceeds the maximum number of (input )?tokens/i,
  /maximum (context|prompt) length/i,
  /reduce the length of the messages/i,
  /context[_ ]length[_ ]exceeded/i,
  /exceeds? (the )?(available |model'?s? )?context (window|length|size)/i,
  /prompt is too long/i,
  /input length and `?max_tokens`? exceed context limit/i,
  /input (is )?too long/i,
  /request too large/i,
  /input length exceeds/i,
  /(prompt|input|request).{0,40}too many tokens/i,
  /number of tokens in the prompt cannot exceed/i,
];

/** Statuses that never mean that the input is too long. */
const OTHER_STATUSES = new Set([
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'CANCELLED',
  'ABORTED',
  'NOT_FOUND',
]);

/** How deep to look into the causes of an error. */
const MOST_CAUSES = 5;

/** Whether a model refused its input as too long. */
export function isLengthRefusal(error: unknown): boolean {
  let cause = error;
  for (let i = 0; i < MOST_CAUSES && typeof cause === 'object' && cause !== null; i++) {
    const { message, status, code, cause: next } = cause as Record<string, unknown>;
    if (typeof status === 'string' && OTHER_STATUSES.has(status)) return false;
    if (code === 'context_length_exceeded') return true;
    if (typeof message === 'string' && LENGTH_REFUSALS.some((text) => text.test(message))) return true;
    cause = next;
  }
  return false;
}
