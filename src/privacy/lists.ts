import type { Page, PageOptions } from '../store/contract.ts';

/** The items of all pages of a list, one after the other. */
export async function* itemsOf<T, O extends PageOptions>(
  list: (options: O) => Promise<Page<T>>,
  options: O,
): AsyncGenerator<T> {
  let cursor: string | undefined;
  do {
    const page = await list({ ...options, ...(cursor !== undefined && { cursor }) });
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}
