/** Elements in a chunk, and chunks in a chunk of chunks. */
export const CHUNK = 32;

/** Up to {@link CHUNK} elements, or chunks of the layer below. */
type Chunk = readonly unknown[];

/**
 * A long immutable array as a tree of chunks. An array that grew by one element shares all chunks with the one before except the last; if
 * it also lost elements at its beginning, except the first and the last. So a version does not cost a pointer for each element.
 */
export class PackedArray {
  readonly #top: readonly Chunk[];
  /** Layers of chunks below those of `#top`. */
  readonly #height: number;
  /** Elements at the beginning of the first chunk that are no longer in the array. */
  readonly #skip: number;

  private constructor(top: readonly Chunk[], height: number, skip: number) {
    this.#top = top;
    this.#height = height;
    this.#skip = skip;
  }

  /** Packs `elements`, and shares the chunks of `base`, an array that was packed before. `baseElements` are the elements of `base`. */
  static from(elements: readonly unknown[], base?: PackedArray, baseElements: readonly unknown[] = []): PackedArray {
    const layers = base ? base.#layers() : [];
    const dropped = elements[0] === baseElements[0] ? 0 : Math.max(baseElements.indexOf(elements[0]), 0);
    const head = base ? base.#skip + dropped : 0;
    const skip = head % CHUNK;
    const first = (head - skip) / CHUNK;
    const gone = skip === 0 ? [] : layers[0]![first]!.slice(0, skip);
    let top = cut([...gone, ...elements], layers[0]?.slice(first));
    let height = 0;
    while (top.length > CHUNK) top = cut(top, layers[++height]);
    return new PackedArray(top, height, skip);
  }

  /** The elements, in a new array. */
  elements(): unknown[] {
    const elements = joined(this.#layers()[0]!);
    return this.#skip === 0 ? elements : elements.slice(this.#skip);
  }

  /** The chunks of each layer, those of elements first. */
  #layers(): (readonly Chunk[])[] {
    const layers = [this.#top];
    for (let level = this.#height; level > 0; level--) layers.unshift(joined(layers[0]!) as Chunk[]);
    return layers;
  }
}

/** Cuts a layer into chunks. Reuses a chunk of `known` if it has the same place and the same items. */
function cut(items: readonly unknown[], known: readonly Chunk[] = []): Chunk[] {
  const chunks: Chunk[] = [];
  for (let start = 0; start < items.length; start += CHUNK) {
    const length = Math.min(CHUNK, items.length - start);
    const before = known[chunks.length];
    const isSame = before?.length === length && before.every((item, i) => Object.is(item, items[start + i]));
    chunks.push(isSame ? before : items.slice(start, start + length));
  }
  return chunks;
}

/** The items of all chunks, in one array; much faster than `flat`. */
function joined(chunks: readonly Chunk[]): unknown[] {
  const items: unknown[] = [];
  for (const chunk of chunks) items.push(...chunk);
  return items;
}
