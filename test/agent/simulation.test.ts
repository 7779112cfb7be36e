import { expect, test } from 'vitest';
import { catchErrorLog } from '../server/support/log.ts';
import { scale, seed } from '../support/scale.ts';
import { play } from './simulation/play.ts';
import { judge } from './simulation/verdict.ts';

// Failures of a store are logged.
catchErrorLog();

const SEEDS = scale(20, 1000);
const FIRST = seed * 1_000_000;

test(`simulation: under ${SEEDS} seeds of faults, deaths and races the sessions are what the model says (seed ${seed})`, async () => {
  const wrong: Record<number, unknown> = {};
  for (let at = FIRST; at < FIRST + SEEDS; at++) {
    const faults = await play(at).then(judge, (error: Error) => [error.message]);
    if (faults.length > 0) wrong[at] = faults;
  }
  expect(wrong, 'what is wrong, by seed').toEqual({});
}, 1_800_000);

test('simulation: a seed always plays the same', async () => {
  const [one, two] = [await play(FIRST), await play(FIRST)];
  const history = ({ commits }: typeof one) =>
    commits.map(({ after }) => [after.sessionId, after.status, after.updatedAt, after.state?.messages]);
  expect(history(two)).toEqual(history(one));
});
