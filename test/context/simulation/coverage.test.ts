import { describe, expect, it } from 'vitest';
import { scale, seed } from '../../support/scale.ts';
import { simulate } from './simulate.ts';

describe('coverage: every message that a window leaves out', () => {
  it(`is covered by one summary, or reported as dropped, in random sessions of two processes (seed ${seed})`, async () => {
    const { violations, windows, summaries, dropped, kills } = await simulate(seed, scale(25, 1_000));
    expect(violations).toEqual([]);
    // The simulation reaches what it is about.
    expect(windows).toBeGreaterThan(scale(200, 8_000));
    expect(summaries).toBeGreaterThan(windows / 10);
    expect(dropped).toBeGreaterThan(0);
    expect(kills).toBeGreaterThan(0);
  });
});
