import { formatPointer, parsePointer } from '../../json/pointer.ts';
import { inspectNested, setMember } from '../../json/value.ts';
import { invalidArgument } from '../../errors.ts';
import { HashNumbering } from './numbering.ts';
import { redactOne } from './redact-text.ts';
import type { Numbering, PrivacyRule, Redacted, RedactValueOptions, ValueFinding } from './types.ts';

/**
 * Replaces the values that the rules find in the strings, numbers and member names of a JSON value by placeholders. A number becomes a
 * string. The URLs of media parts are left alone. `value` is not changed; the result shares the parts without findings.
 *
 * @throws `INVALID_ARGUMENT` for an `except` that is no JSON Pointer, `JsonValueError` for a value that is not JSON, and the error of a
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
  const walk = new Walk(rules, numbering, signal);
  const redacted = (await walk.redact(value, except.map(parseExcept))) as T;
  return { value: redacted, findings: walk.findings };
}

/** The rest of each path to an exception, below the current value. */
type Exceptions = readonly (readonly string[])[];

class Walk {
  readonly findings: ValueFinding[] = [];
  readonly #path: (string | number)[] = [];

  constructor(
    readonly rules: readonly PrivacyRule[],
    readonly numbering: Numbering,
    readonly signal: AbortSignal | undefined,
  ) {}

  /** @param label The name of the nearest member around the value. */
  async redact(value: unknown, except: Exceptions, label?: string): Promise<unknown> {
    if (except.some((tokens) => tokens.length === 0)) return value;
    if (typeof value === 'string') return this.#redactText(value, { label });
    if (typeof value === 'number') {
      const text = String(value);
      const redacted = await this.#redactText(text, { label, wholeOnly: true });
      return redacted === text ? value : redacted;
    }
    if (Array.isArray(value)) return this.#redactArray(value, except, label);
    if (typeof value === 'object' && value !== null) return this.#redactObject(value, except);
    return value;
  }

  async #redactText(text: string, options: { label?: string; wholeOnly?: boolean; inName?: true }): Promise<string> {
    const { inName, ...rest } = options;
    const { value, findings } = await redactOne(text, this.rules, this.numbering, { ...rest, signal: this.signal });
    if (findings.length === 0) return text;
    // The path has the redacted name.
    const path = formatPointer(inName ? [...this.#path, value] : this.#path);
    this.findings.push(...findings.map((finding) => ({ ...finding, path, ...(inName && { inName }) })));
    return value;
  }

  async #redactArray(items: unknown[], except: Exceptions, label?: string): Promise<unknown[]> {
    let copy: unknown[] | undefined;
    for (const [index, item] of items.entries()) {
      const redacted = await this.#below(index, () => this.redact(item, below(except, String(index)), label));
      if (redacted !== item) (copy ??= items.slice())[index] = redacted;
    }
    return copy ?? items;
  }

  async #redactObject(members: object, except: Exceptions): Promise<object> {
    const copy = {};
    let changed = false;
    for (const [name, member] of Object.entries(members)) {
      const exceptMember = below(except, name);
      const isExcept = exceptMember.some((tokens) => tokens.length === 0);
      const newName = isExcept ? name : freeName(copy, await this.#redactText(name, { inName: true }));
      const redacted = isMediaUrl(this.#path.at(-1), name, member)
        ? member
        : await this.#below(newName, () => this.redact(member, exceptMember, name));
      changed ||= newName !== name || redacted !== member;
      setMember(copy, newName, redacted);
    }
    return changed ? copy : members;
  }

  async #below<R>(token: string | number, walk: () => Promise<R>): Promise<R> {
    this.#path.push(token);
    const result = await walk();
    this.#path.pop();
    return result;
  }
}

/** Two names can get the same placeholder, for example two spellings of an address. Both members are kept. */
function freeName(members: object, name: string): string {
  let free = name;
  for (let copy = 2; Object.hasOwn(members, free); copy++) free = `${name} (${copy})`;
  return free;
}

/** The `url` of a Genkit media part, which is often a file. Any other text in its place is searched. */
function isMediaUrl(parent: string | number | undefined, name: string, value: unknown): boolean {
  return (
    parent === 'media' && name === 'url' && typeof value === 'string' && /^[a-z][a-z\d+.-]{1,30}:\S+$/i.test(value)
  );
}

function below(except: Exceptions, token: string): Exceptions {
  return except.length === 0
    ? except
    : except.filter(([first]) => first === token || first === '*').map(([, ...rest]) => rest);
}

function parseExcept(pointer: string): string[] {
  try {
    return parsePointer(pointer);
  } catch (error) {
    throw invalidArgument(`'except' holds '${pointer}': ${(error as Error).message}.`);
  }
}
