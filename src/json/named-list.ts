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
