import { invalidArgument } from '../../errors.ts';
import type { Page, PageOptions } from '../contract.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

/** The possible members of a position, with their types. */
interface PositionParts {
  number: number;
  string: string;
}

/** The position of an item in a list. Each store defines its shape. */
export type Position<Shape extends readonly (keyof PositionParts)[]> = {
  readonly [I in keyof Shape]: PositionParts[Shape[I]];
};

/** A checked {@link PageOptions}. */
export interface PageRequest<P> {
  readonly limit: number;
  /** The position of the previous page's last item; `undefined` for the first page. */
  readonly after: P | undefined;
}

/** One entry of a list. */
export interface Entry<T> {
  readonly position: readonly (number | string)[];
  /** `undefined`: the entry is skipped. */
  readonly item: T | undefined;
}

/**
 * Checks the options that select a page.
 *
 * @param shape The members of a position in this list.
 * @throws `INVALID_ARGUMENT` for an invalid limit, and for a cursor that is not from this list.
 */
export function checkPage<const Shape extends readonly (keyof PositionParts)[]>(
  options: PageOptions | undefined,
  shape: Shape,
): PageRequest<Position<Shape>> {
  const limit = options?.limit ?? DEFAULT_LIMIT;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
    throw invalidArgument(`limit must be a whole number from 1 to ${MAX_LIMIT}.`);
  }
  const { cursor } = options ?? {};
  return { limit, after: cursor === undefined ? undefined : decodeCursor(cursor, shape) };
}

/**
 * Makes a page.
 *
 * @param rest The entries after the requested position, in order: at least `limit + 1`, if there are so many.
 * @param describe Makes an item. Called only for the entries on the page.
 */
export function pageOf<R, T>(
  rest: readonly R[],
  limit: number,
  describe: (one: R, index: number) => Entry<T>,
): Page<T> {
  const entries = rest.slice(0, limit).map(describe);
  const items = entries.flatMap(({ item }) => (item === undefined ? [] : [item]));
  const last = entries.at(-1);
  return last && rest.length > limit ? { items, nextCursor: encodeCursor(last.position) } : { items };
}

/** Encodes the position of the last item as base64url of its JSON. Cursors are opaque to callers. */
export function encodeCursor(position: readonly (number | string)[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(position));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}

function decodeCursor<Shape extends readonly (keyof PositionParts)[]>(cursor: string, shape: Shape): Position<Shape> {
  try {
    const binary = atob(cursor.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    const position: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (
      Array.isArray(position) &&
      position.length === shape.length &&
      shape.every((t, i) => typeof position[i] === t)
    ) {
      return position as unknown as Position<Shape>;
    }
  } catch {
    // Every invalid cursor gets the error below.
  }
  throw invalidArgument('This cursor is invalid. Pass nextCursor of the previous page unchanged.');
}
