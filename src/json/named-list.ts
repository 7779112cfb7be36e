/**
 * Adds an item to a list with unique names: replaces the item of the same name, or appends. Items with no or an empty name are appended.
 *
 * @returns Whether it replaced an item.
 */
export function putByName<T extends { readonly name?: string }>(items: T[], item: T): boolean {
  const place = item.name ? items.findIndex(({ name }) => name === item.name) : -1;
  if (place < 0) items.push(item);
  else items[place] = item;
  return place >= 0;
}

/** The list with added items, by {@link putByName}; but an item without a name is not appended if the list has an equal one. */
export function mergeByName<T extends { readonly name?: string }>(items: readonly T[], added: readonly T[]): T[] {
  const merged = [...items];
  const keys = items.map(keyOf);
  for (const item of added) {
    const key = keyOf(item);
    const found = keys.indexOf(key);
    const place = found < 0 ? merged.length : found;
    merged[place] = item;
    // Each item without a name stands for one of the added items only.
    keys[place] = item.name ? key : '';
  }
  return merged;
}

function keyOf(item: { readonly name?: string }): string {
  return JSON.stringify(item.name || item);
}
