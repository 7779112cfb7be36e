/**
 * Cuts a list into chunks of at most `most`, in its order. A larger item gets its own chunk.
 *
 * @param sizeOf The size of an item. Default: `most` is a number of items.
 */
export function chunksOf<T>(items: readonly T[], most: number, sizeOf: (item: T) => number = () => 1): T[][] {
  const chunks: T[][] = [];
  let room = 0;
  for (const item of items) {
    const size = sizeOf(item);
    if (size > room || chunks.length === 0) {
      chunks.push([]);
      room = most;
    }
    chunks.at(-1)!.push(item);
    room -= size;
  }
  return chunks;
}
