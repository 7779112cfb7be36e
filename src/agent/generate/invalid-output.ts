import { GenkitError } from 'genkit';
import type { toJsonSchema } from 'genkit/schema';
import { addressTo } from '../../errors.ts';
import { jsonEqual } from '../../json/value.ts';

/** Where a value does not fit its schema. */
interface Misfit {
  readonly path: string;
  readonly message: string;
}

/** More would be a wall of text, and a caller can't mend them anyway. */
const MAX_MISFITS = 10;

/**
 * The failure of a turn whose reply does not fit the output schema: Genkit's own error shows the schema and the reply, this one only the
 * places that do not fit. What Genkit threw is its `cause`.
 *
 * @returns `undefined` when `error` is about something else.
 */
export function invalidOutput(error: unknown, schema: ReturnType<typeof toJsonSchema>): GenkitError | undefined {
  const misfits = misfitsOf(error, schema);
  if (!misfits) return undefined;
  const errors = misfits.slice(0, MAX_MISFITS).map(({ path, message }) => ({ path, message }));
  const invalid = new GenkitError({
    status: 'FAILED_PRECONDITION',
    message: "The model's reply does not fit the output schema of the agent. Send the message again.",
    detail: { reason: 'INVALID_OUTPUT', ...(errors.length > 0 && { errors }) },
  });
  invalid.cause = error;
  return addressTo('caller', invalid);
}

/** Empty for a reply that is no JSON. */
function misfitsOf(error: unknown, schema: unknown): readonly Misfit[] | undefined {
  if (!(error instanceof Error) || schema === undefined) return undefined;
  // Genkit parses replies by the library JSON5.
  if (error.name === 'SyntaxError' && error.message.startsWith('JSON5')) return [];
  const { detail } = error as { detail?: { schema?: unknown; errors?: unknown } };
  return detail && Array.isArray(detail.errors) && jsonEqual(detail.schema, schema)
    ? (detail.errors as Misfit[])
    : undefined;
}
