import type { z } from 'genkit';
import { StateError } from '../../errors.ts';
import { formatPointer } from '../../json/pointer.ts';
import { jsonBytes } from '../../json/size.ts';
import { copyJson, JsonValueError, type Json } from '../../json/value.ts';
import { checkOptions, isWhole } from '../../store/options.ts';
import { formatStateKey, parseStateKey, type StateKey } from './state-keys.ts';

/** How large keys and values of a session's state may be. */
export interface StateLimits {
  /** Characters of a key, its prefix included; 256 unless told. */
  maxKeyLength?: number;
  /** Bytes of a value as JSON text in UTF-8; 256 KiB unless told. A store may set a limit of its own to all values of a scope together. */
  maxValueBytes?: number;
  /** How many arrays and objects may lie in each other; 64 unless told. */
  maxDepth?: number;
}

const DEFAULT_LIMITS: Required<StateLimits> = { maxKeyLength: 256, maxValueBytes: 256 * 1024, maxDepth: 64 };

/**
 * The limits, with nothing left open.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function settleLimits(limits: StateLimits | undefined): Required<StateLimits> {
  checkOptions('limits', limits, { maxKeyLength: isWhole(1), maxValueBytes: isWhole(1), maxDepth: isWhole(0) });
  const given = Object.entries(limits ?? {}).filter(([, limit]) => limit !== undefined);
  return { ...DEFAULT_LIMITS, ...Object.fromEntries(given) };
}

/**
 * What the members of one scope must be, each by itself: a Zod object, or a record; what it says of several at once by `refine` is not looked
 * at. Of another schema nothing is known about single members.
 */
export type MemberSchema = z.ZodTypeAny;

/** Decides which keys and values a session's state takes. */
export class StateRules {
  readonly #limits: Required<StateLimits>;
  readonly #schemas: { readonly [scope in StateKey['scope']]?: MemberSchema | undefined };

  constructor(
    limits: StateLimits | undefined,
    schemas: { readonly [scope in StateKey['scope']]?: MemberSchema | undefined },
  ) {
    this.#limits = settleLimits(limits);
    this.#schemas = {
      session: memberSchemaOf(schemas.session),
      user: memberSchemaOf(schemas.user),
      app: memberSchemaOf(schemas.app),
    };
  }

  /**
   * @throws StateError
   */
  assertKey(key: unknown): asserts key is string {
    if (typeof key !== 'string') {
      throw new StateError({ key: String(key), reason: `it is no string but ${key === null ? 'null' : typeof key}` });
    }
    const { maxKeyLength } = this.#limits;
    if (key.length > maxKeyLength) {
      throw new StateError({ key, reason: `it has ${key.length} characters; at most ${maxKeyLength} are allowed` });
    }
  }

  /**
   * Whether a value could be kept under the key, whichever it is.
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
   * A copy of a value that may be kept under the key.
   *
   * @throws StateError
   */
  accept(place: StateKey, value: unknown): Json {
    const key = formatStateKey(place);
    const copy = copyValue(place, value);
    const { maxValueBytes, maxDepth } = this.#limits;
    if (jsonBytes(copy, maxValueBytes) > maxValueBytes) {
      const reason = `its value takes more than ${maxValueBytes} bytes; keep it elsewhere and its id here`;
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

/** Members are checked one at a time, so none is missing. Kinds are told by name: the schema may be made with another copy of Zod. */
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
    // A reason may name another place.
    const reason = path === error.path ? error.reason : 'one of its members is not a JSON value';
    throw new StateError({ key, path, reason });
  }
  throw new StateError({ key, reason: 'its value is undefined; delete the key, or store null' });
}

/** Errors are stored and traced, and nothing of a `temp:` value is: the names of its members neither. */
function pathIn({ scope }: StateKey, path: string): string {
  return scope === 'temp' ? '' : path;
}

/** Where the value first lies deeper than so many levels. */
function pathBelow(value: Json, levels: number): (string | number)[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (levels === 0) return [];
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    const path = pathBelow((value as Record<string | number, Json>)[key]!, levels - 1);
    if (path) return [key, ...path];
  }
  return undefined;
}

/** Zod's own messages may quote the value, which may be nobody's business. */
function problemOf(issue: z.ZodIssue): string {
  if (issue.code === 'invalid_type') return `it must be of type ${issue.expected}, not ${issue.received}`;
  if (issue.code === 'unrecognized_keys') return 'the schema has no such key';
  return `it is refused as ${issue.code.replaceAll('_', ' ')}`;
}
