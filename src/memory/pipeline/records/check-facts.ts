import { invalidArgument } from '../../../errors.ts';
import { jsonBytes } from '../../../json/size.ts';
import { inspectNested, JsonValueError } from '../../../json/value.ts';
import {
  checkOptions,
  isBoolean,
  isListOf,
  isObject,
  isOneOf,
  isShare,
  isText,
  isTime,
  isWhole,
  type OptionCheck,
} from '../../../store/check-options.ts';
import type { MemoryFact } from '../../types.ts';

export const isJson: OptionCheck = (value) => {
  try {
    inspectNested(value, 0);
    return undefined;
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    return `plain JSON: ${error.message}`;
  }
};

const FACT: Readonly<Record<keyof MemoryFact, OptionCheck>> = {
  text: isText,
  data: isJson,
  schemaId: isText,
  topics: isListOf(isText, 'labels'),
  importance: isShare,
  key: isText,
  kind: isOneOf('declarative', 'procedural'),
  messages: isListOf(isWhole(0), 'positions of messages'),
  isExplicit: isBoolean,
  expiresAt: isTime,
};

/** The most bytes of a fact besides its text. A memory contains them twice, in itself and in its source, and a store takes 256 KiB. */
const MAX_FACT_BYTES = 112 * 1024;

export function toFact(given: MemoryFact | string): MemoryFact {
  return typeof given === 'string' ? { text: given } : given;
}

/** @throws `INVALID_ARGUMENT` with the position and the member. */
export function checkFacts(owner: string, facts: unknown): asserts facts is readonly (MemoryFact | string)[] {
  if (!Array.isArray(facts)) throw invalidArgument(`${owner} must be a list of texts, or of facts such as { text }.`);
  for (const [i, fact] of facts.entries()) {
    const at = `${owner}[${i}]`;
    const fault = typeof fact === 'string' ? isText(fact) : isObject(fact);
    if (fault) throw invalidArgument(`${at} must be a text that is not blank, or a fact such as { text }.`);
    if (typeof fact === 'string') continue;
    checkOptions(at, fact as MemoryFact, FACT);
    const { text, ...rest } = fact as Partial<MemoryFact>;
    if (text === undefined) throw invalidArgument(`${at} needs a text.`);
    if (jsonBytes(rest, MAX_FACT_BYTES) > MAX_FACT_BYTES)
      throw invalidArgument(
        `${at} takes more than ${MAX_FACT_BYTES} bytes besides its text. Divide it, or store large values elsewhere.`,
      );
  }
}
