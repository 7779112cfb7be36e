import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { forAll } from './support/for-all.ts';

it('plays the requested number of values', async () => {
  let played = 0;
  await forAll(fc.nat(), () => played++, { seed: 1, numRuns: 30 });
  expect(played).toBe(30);
});

it('finds the smallest value that fails', async () => {
  const play = (n: number): void => expect(n).toBeLessThan(4);
  await expect(forAll(fc.nat(), play, { seed: 1, numRuns: 30 })).rejects.toThrow('Counterexample: [4]');
});

it('fails with the smallest value so far if shrinking takes too long', async () => {
  let played = 0;
  const play = (): void => {
    played++;
    throw new Error('always');
  };
  const random = { seed: 1, numRuns: 30, shrinkingMs: 0 };
  await expect(forAll(fc.array(fc.nat(), { minLength: 5 }), play, random)).rejects.toThrow(/seed: 1, path: "0"/);
  expect(played).toBe(1);
});
