import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { seed } from '../../../support/scale.ts';
import { atomicUpdate } from './scripts/atomic-update.ts';
import { Fleet, type Child } from './support/fleet.ts';
import { oneSession } from './scripts/one-session.ts';
import { terminalState } from './scripts/terminal-state.ts';

// Starting a process takes longer than most of these tests, so all share eight of them.
describe(`processes that write at the same time (seed ${seed})`, () => {
  const processes = new Fleet();
  const folders = new Fleet();
  const children: Child[] = [];
  const contenders = { children, folder: () => folders.folder() };

  beforeAll(async () => {
    children.push(...(await processes.launch(8)));
  });
  afterEach(() => folders.end());
  afterAll(() => processes.end());

  atomicUpdate(contenders);
  terminalState(contenders);
  oneSession(contenders);
});
