import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { sessionServiceSuite } from './session-service-suite.ts';

sessionServiceSuite('InMemorySessionStore', async () => {
  const store = new InMemorySessionStore();
  return { a: store, b: store, close: () => store.close() };
});

sessionServiceSuite('FileSessionStore', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-service-'));
  const [a, b] = [1, 2].map(() => new FileSessionStore(folder, { durability: 'fast' }));
  const close = async (): Promise<void> => {
    await Promise.all([a!.close(), b!.close()]);
    rmSync(folder, { recursive: true, force: true });
  };
  return { a: a!, b: b!, close };
});
