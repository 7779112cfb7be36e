import { describe, expect, it } from 'vitest';
import { scale, seed } from '../../support/scale.ts';
import { simulate } from './simulate.ts';

const sessions = scale(8, 1_000);

describe('coverage: every message that a window leaves out', () => {
  it(`is in one summary or reported as dropped: ${sessions} random sessions, seed ${seed}`, async () => {
    const { violations, windows, summaries, dropped, kills } = await simulate(seed, sessions);
    expect(violations).toEqual([]);
    // The simulation reaches what it is about.
    expect(windows).toBeGreaterThan(sessions * 8);
    expect(summaries).toBeGreaterThan(windows / 10);
    expect(dropped).toBeGreaterThan(0);
    expect(kills).toBeGreaterThan(0);
  });
});
