import { GenkitError } from 'genkit';
import type { toJsonSchema } from 'genkit/schema';
import { addressTo } from '../../errors.ts';
import { jsonEqual } from '../../json/value.ts';

/** A violation of the schema. */
interface Violation {
  readonly path: string;
  readonly message: string;
}

/** A longer list would not help: the caller can't correct the reply. */
const MAX_VIOLATIONS = 10;

/**
 * The error of a turn whose reply does not fit the output schema. Genkit's own error contains the schema and the reply; this one names only
 * the violations and has Genkit's error as its `cause`.
 *
 * @returns `undefined` when `error` has another cause.
 */
export function invalidOutput(error: unknown, schema: ReturnType<typeof toJsonSchema>): GenkitError | undefined {
  const violations = violationsOf(error, schema);
  if (!violations) return undefined;
  const errors = violations.slice(0, MAX_VIOLATIONS).map(({ path, message }) => ({ path, message }));
  const invalid = new GenkitError({
    status: 'FAILED_PRECONDITION',
    message: "The model's reply does not fit the output schema of the agent. Send the message again.",
    detail: { reason: 'INVALID_OUTPUT', ...(errors.length > 0 && { errors }) },
  });
  invalid.cause = error;
  return addressTo('caller', invalid);
}

/** The violations; empty for a reply that is not JSON. */
function violationsOf(error: unknown, schema: unknown): readonly Violation[] | undefined {
  if (!(error instanceof Error) || schema === undefined) return undefined;
  // Genkit parses replies with the JSON5 library.
  if (error.name === 'SyntaxError' && error.message.startsWith('JSON5')) return [];
  const { detail } = error as { detail?: { schema?: unknown; errors?: unknown } };
  return detail && Array.isArray(detail.errors) && jsonEqual(detail.schema, schema)
    ? (detail.errors as Violation[])
    : undefined;
}
