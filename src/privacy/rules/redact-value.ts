import { formatPointer, parsePointer } from '../../json/pointer.ts';
import { replaceTexts } from '../../json/replace-texts.ts';
import { inspectNested } from '../../json/value.ts';
import { invalidArgument } from '../../errors.ts';
import { HashNumbering } from './numbering.ts';
import { redactOne } from './redact-text.ts';
import type { PrivacyRule, Redacted, RedactValueOptions, ValueFinding } from './types.ts';

/**
 * Replaces the values that the rules find in the strings, numbers and member names of a JSON value by placeholders. A number becomes a
 * string. The URLs of media parts are kept. `value` is not changed; the result shares the parts without findings.
 *
 * @throws `INVALID_ARGUMENT` for an `except` that is not a JSON Pointer, `JsonValueError` for a value that is not JSON, and the error of a
 *   rule that throws.
 * @example
 * import { piiRules, redactValue } from 'genkitx-agents/privacy';
 * const { value } = await redactValue({ to: 'anna@example.com', id: 7 }, piiRules(), { except: ['/id'] });
 */
export async function redactValue<T>(
  value: T,
  rules: readonly PrivacyRule[],
  options: RedactValueOptions = {},
): Promise<Redacted<T, ValueFinding>> {
  const { numbering = new HashNumbering(), except = [], signal } = options;
  // Refuses values that are not JSON, for example cycles, before the walk.
  inspectNested(value, 0);
  const findings: ValueFinding[] = [];
  const redacted = await replaceTexts(
    value,
    async (text, { kind, path, label }) => {
      const wholeOnly = kind === 'number';
      const found = await redactOne(text, rules, numbering, {
        wholeOnly,
        signal,
        ...(label !== undefined && { label }),
      });
      if (found.findings.length === 0) return text;
      // The path has the redacted name.
      const pointer = formatPointer(kind === 'name' ? [...path, found.value] : path);
      const where = { path: pointer, ...(kind === 'name' && { inName: true as const }) };
      findings.push(...found.findings.map((finding) => ({ ...finding, ...where })));
      return found.value;
    },
    except.map(parseExcept),
  );
  return { value: redacted, findings };
}

/** @throws `INVALID_ARGUMENT` for a text that is not a JSON Pointer. */
export function parseExcept(pointer: string): string[] {
  try {
    return parsePointer(pointer);
  } catch (error) {
    throw invalidArgument(`'except' holds '${pointer}': ${(error as Error).message}.`);
  }
}
