/**
 * Puts an item into a list that has one of each name: in the place of the one of its name, else at the end. One without a name, or with an
 * empty one, is always another.
 *
 * @returns Whether it took the place of another.
 */
export function putByName<T extends { readonly name?: string }>(items: T[], item: T): boolean {
  const place = item.name ? items.findIndex(({ name }) => name === item.name) : -1;
  if (place < 0) items.push(item);
  else items[place] = item;
  return place >= 0;
}
