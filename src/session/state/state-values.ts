import type { z } from 'genkit';
import { StateError } from '../../errors.ts';
import { formatPointer } from '../../json/pointer.ts';
import { jsonBytes } from '../../json/size.ts';
import { copyJson, JsonValueError, type Json } from '../../json/value.ts';
import { checkOptions, isWhole, withDefaults } from '../../store/check-options.ts';
import { formatStateKey, parseStateKey, type StateKey } from './state-keys.ts';

/** Size limits for the keys and values of a session's state. */
export interface StateLimits {
  /** Maximum characters of a key, including its prefix. Default: 256. */
  maxKeyLength?: number;
  /** Maximum bytes of a value as JSON text in UTF-8. A store may limit all values of a scope together. Default: 262,144 (256 KiB). */
  maxValueBytes?: number;
  /** Maximum nesting of arrays and objects. Default: 64. */
  maxDepth?: number;
}

const DEFAULT_LIMITS: Required<StateLimits> = { maxKeyLength: 256, maxValueBytes: 256 * 1024, maxDepth: 64 };

/**
 * The limits with all defaults applied.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function resolveLimits(limits: StateLimits | undefined): Required<StateLimits> {
  checkOptions('limits', limits, { maxKeyLength: isWhole(1), maxValueBytes: isWhole(1), maxDepth: isWhole(0) });
  return withDefaults(DEFAULT_LIMITS, limits);
}

/**
 * Schema of the keys of one scope, each checked by itself: a Zod object or a record. A `refine` across several keys does not run. With any other
 * schema type single members are not checked.
 */
export type MemberSchema = z.ZodTypeAny;

/** Decides which keys and values a session's state accepts. */
export class StateRules {
  readonly limits: Required<StateLimits>;
  readonly #schemas: { readonly [scope in StateKey['scope']]?: MemberSchema | undefined };

  constructor(
    limits: StateLimits | undefined,
    schemas: { readonly [scope in StateKey['scope']]?: MemberSchema | undefined },
  ) {
    this.limits = resolveLimits(limits);
    this.#schemas = {
      session: memberSchemaOf(schemas.session),
      user: memberSchemaOf(schemas.user),
      app: memberSchemaOf(schemas.app),
    };
  }

  /** @throws StateError */
  assertKey(key: unknown): asserts key is string {
    if (typeof key !== 'string') {
      throw new StateError({
        key: String(key),
        reason: `it must be a string, not ${key === null ? 'null' : typeof key}`,
      });
    }
    const { maxKeyLength } = this.limits;
    if (key.length > maxKeyLength) {
      throw new StateError({ key, reason: `it has ${key.length} characters; at most ${maxKeyLength} are allowed` });
    }
  }

  /**
   * Checks whether the key could hold any value.
   *
   * @throws StateError
   */
  assertUsable(key: string): void {
    this.assertKey(key);
    const place = parseStateKey(key);
    const { error } = this.#schemas[place.scope]?.safeParse({ [place.name]: null }) ?? {};
    const issue = error?.issues.find(({ code }) => code === 'unrecognized_keys');
    if (issue) throw new StateError({ key, reason: `it does not fit the schema: ${problemOf(issue)}` });
  }

  /**
   * Returns a copy of a value that the key accepts.
   *
   * @throws StateError
   */
  accept(place: StateKey, value: unknown): Json {
    const key = formatStateKey(place);
    const copy = copyValue(place, value);
    const { maxValueBytes, maxDepth } = this.limits;
    if (jsonBytes(copy, maxValueBytes) > maxValueBytes) {
      const reason = `its value takes more than ${maxValueBytes} bytes; store it elsewhere and keep its id here`;
      throw new StateError({ key, reason });
    }
    const tooDeep = pathBelow(copy, maxDepth);
    if (tooDeep) {
      const reason = `it is nested deeper than ${maxDepth} levels; flatten it or store it as a string`;
      throw new StateError({ key, path: pathIn(place, formatPointer(tooDeep)), reason });
    }
    this.assertFits(place, copy);
    return copy;
  }

  /**
   * Checks a value against the schema of its scope.
   *
   * @throws StateError
   */
  assertFits(place: StateKey, value: Json): void {
    const schema = this.#schemas[place.scope];
    if (!schema) return;
    const { error } = schema.safeParse({ [place.name]: value });
    const issue = error?.issues[0];
    if (!issue) return;
    throw new StateError({
      key: formatStateKey(place),
      path: formatPointer(issue.path.slice(1)),
      reason: `it does not fit the schema: ${problemOf(issue)}`,
    });
  }
}

/** Members are checked one at a time, so none is required. Types are compared by name, because the schema may be of another copy of Zod. */
function memberSchemaOf(schema: MemberSchema | undefined): MemberSchema | undefined {
  const { typeName } = (schema?._def ?? {}) as { typeName?: string };
  switch (typeName) {
    case 'ZodObject':
      return (schema as z.AnyZodObject).partial();
    case 'ZodRecord':
      return schema;
    case 'ZodEffects':
      return memberSchemaOf((schema as z.ZodEffects<MemberSchema>).innerType());
    default:
      return undefined;
  }
}

function copyValue(place: StateKey, value: unknown): Json {
  const key = formatStateKey(place);
  try {
    if (value !== undefined) return copyJson(value) as Json;
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    const path = pathIn(place, error.path);
    // The reason may name another path.
    const reason = path === error.path ? error.reason : 'one of its members is not a JSON value';
    throw new StateError({ key, path, reason });
  }
  throw new StateError({ key, reason: 'its value is undefined; delete the key, or store null' });
}

/** Errors are stored and traced, so they must not contain the member names of a `temp:` value. */
function pathIn({ scope }: StateKey, path: string): string {
  return scope === 'temp' ? '' : path;
}

/** The path at which the value first exceeds this depth. */
function pathBelow(value: Json, levels: number): (string | number)[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (levels === 0) return [];
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    const path = pathBelow((value as Record<string | number, Json>)[key]!, levels - 1);
    if (path) return [key, ...path];
  }
  return undefined;
}

/** Does not use Zod's own messages, which may quote the value. */
function problemOf(issue: z.ZodIssue): string {
  if (issue.code === 'invalid_type') return `it must be of type ${issue.expected}, not ${issue.received}`;
  if (issue.code === 'unrecognized_keys') return 'the schema has no such key';
  return `it was refused as ${issue.code.replaceAll('_', ' ')}`;
}
