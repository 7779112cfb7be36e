import * as fc from 'fast-check';

/** How long a smaller counterexample is looked for: one try takes seconds on a database, and there are thousands of smaller ones. */
const SHRINKING_MS = 30_000;

/** Plays random values, and fails with the smallest that was found to fail. */
export async function forAll<T>(
  values: fc.Arbitrary<T>,
  play: (value: T) => unknown,
  { shrinkingMs = SHRINKING_MS, ...random }: fc.Parameters<[T]> & { shrinkingMs?: number },
): Promise<void> {
  let end = Infinity;
  const property = fc.asyncProperty(values, async (value) => {
    if (performance.now() >= end) throw new fc.PreconditionFailure(true);
    try {
      await play(value);
    } catch (error) {
      end = Math.min(end, performance.now() + shrinkingMs);
      throw error;
    }
  });
  await fc.assert(property, random);
}
