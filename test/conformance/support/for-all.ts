import * as fc from 'fast-check';

/** The time limit for finding a smaller counterexample. One try takes seconds on a database, and there are thousands of smaller values. */
const SHRINKING_MS = 30_000;

/** Plays random values, and fails with the smallest failing value that it found. */
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
