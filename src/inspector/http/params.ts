import { invalidArgument } from '../../errors.ts';
import { isMembers } from '../../json/fault.ts';

/** The parameters of a request, from its query or its body. */
export class Params {
  readonly #values: ReadonlyMap<string, unknown>;

  private constructor(values: ReadonlyMap<string, unknown>) {
    this.#values = values;
  }

  /** The parameters of a read. A repeated name has a list. */
  static ofQuery(query: URLSearchParams): Params {
    const names = new Set(query.keys());
    return new Params(
      new Map(
        [...names].map((name) => {
          const all = query.getAll(name);
          return [name, all.length > 1 ? all : all[0]];
        }),
      ),
    );
  }

  /** @throws `INVALID_ARGUMENT` when the body is not a JSON object. */
  static ofBody(text: string): Params {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      // Refused below.
    }
    if (!isMembers(body)) throw invalidArgument('The body of a write must be a JSON object.');
    return new Params(new Map(Object.entries(body)));
  }

  /** @throws `INVALID_ARGUMENT` when it is not a single text. */
  text(name: string): string | undefined {
    const value = this.#values.get(name);
    if (value === undefined || typeof value === 'string') return value;
    throw invalidArgument(`${name} must be a single text.`);
  }

  /** @throws `INVALID_ARGUMENT` when it is missing. */
  mustText(name: string): string {
    const value = this.text(name);
    if (value !== undefined) return value;
    throw invalidArgument(`${name} is missing.`);
  }

  /** A parameter that may be repeated. */
  texts(name: string): string[] {
    const value = this.#values.get(name);
    return [value].flat().filter((one) => typeof one === 'string');
  }

  /** @throws `INVALID_ARGUMENT` when it is not a whole number in the range. */
  whole(name: string, least: number, most: number): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const number = Number(value);
    if (value.trim() !== '' && Number.isInteger(number) && number >= least && number <= most) return number;
    throw invalidArgument(`${name} must be a whole number from ${least} to ${most}.`);
  }

  /** A time in ISO 8601, converted to ms since 1970. */
  time(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const time = Date.parse(value);
    if (!Number.isNaN(time)) return time;
    throw invalidArgument(`${name} must be a time, such as 2026-01-31T12:00:00Z.`);
  }

  /** @throws `INVALID_ARGUMENT` when it is not one of the values. */
  oneOf<T extends string>(name: string, ...values: readonly T[]): T | undefined {
    const value = this.text(name);
    if (value === undefined || (values as readonly string[]).includes(value)) return value as T | undefined;
    throw invalidArgument(`${name} must be one of ${values.join(', ')}.`);
  }

  isSet(name: string): boolean {
    return this.oneOf(name, 'true', 'false') === 'true';
  }

  /** JSON: text in a query, a value in a body. */
  json(name: string): unknown {
    const value = this.#values.get(name);
    if (typeof value !== 'string') return value;
    try {
      return JSON.parse(value);
    } catch {
      throw invalidArgument(`${name} must be JSON.`);
    }
  }

  /**
   * The id of what is to be removed.
   *
   * @throws `INVALID_ARGUMENT` when it is missing, or `confirm` does not repeat it.
   */
  confirmedId(name: string): string {
    const id = this.mustText(name);
    if (this.#values.get('confirm') === id) return id;
    throw invalidArgument('To remove this, pass its id as confirm.');
  }
}
