/** The table of `docs/state.md` beside Google's Agent Development Kit, as far as it is about us. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CHECKS } from '../../bench/state-checks.ts';
import { openOurs, tryAll } from '../../bench/state.ts';

const rows = [
  ...readFileSync(new URL('../../docs/state.md', import.meta.url), 'utf8').matchAll(
    /^\| (.+) \| yes \| (?:yes|\*\*no\*\*: .+) \|$/gm,
  ),
].map(([, name]) => name);

it('docs/state.md has every behaviour that the bench tries, in its order', () => {
  expect(rows).toEqual(Object.keys(CHECKS));
});

it('our service shows every one of them', async () => {
  expect(await tryAll(openOurs)).toEqual(rows.map(() => undefined));
});
