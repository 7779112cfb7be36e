import { invalidArgument } from '../../errors.ts';
import { jsonBytes } from '../../json/size.ts';
import { copyJson, JsonValueError } from '../../json/value.ts';

/**
 * Makes the store's own copy of a value.
 *
 * @param what Describes the value, as the beginning of a sentence.
 * @throws `INVALID_ARGUMENT` if JSON can't represent the value, or its JSON text takes more than `maxBytes`.
 */
export function ownJson<T>(value: T, what: string, maxBytes: number): T {
  let own: T;
  try {
    own = copyJson(value);
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    throw invalidArgument(`${what} can't be saved: ${error.message}`);
  }
  if (jsonBytes(own, maxBytes) > maxBytes) {
    throw invalidArgument(
      `${what} would take more than ${maxBytes} bytes. Divide it, or store large values elsewhere.`,
    );
  }
  return own;
}
