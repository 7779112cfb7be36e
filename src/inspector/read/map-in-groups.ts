const AT_ONCE = 10;

/** Maps a list in its order. Works on 10 items at a time, so that a long list does not flood the store. */
export async function mapInGroups<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const mapped: R[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    mapped.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(work))));
  }
  return mapped;
}
