import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { sessionFencesSuite } from './session-fences-suite.ts';

const runs = { short: 15, long: 2000 };

sessionFencesSuite('InMemorySessionStore', runs, (use, options) => use(new InMemorySessionStore(options)));

sessionFencesSuite('FileSessionStore', runs, async (use, options) => {
  const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-fences-'));
  const [a, b] = [1, 2].map(() => new FileSessionStore(folder, { ...options, durability: 'fast' }));
  try {
    await use(a!, b!);
  } finally {
    await Promise.all([a!.close(), b!.close()]);
    rmSync(folder, { recursive: true, force: true });
  }
});
