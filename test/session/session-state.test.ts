import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { readableOf, sessionStateSuite } from './session-state-suite.ts';

sessionStateSuite('InMemorySessionStore', async (options) => {
  const store = new InMemorySessionStore(options);
  return { a: store, b: store, raw: () => readableOf(store), close: () => store.close() };
});

sessionStateSuite('FileSessionStore', async (options) => {
  const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-state-'));
  const [a, b] = [1, 2].map(() => new FileSessionStore(folder, { ...options, durability: 'fast' }));
  const raw = async (): Promise<string> => {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const bytes = files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'));
    return [...bytes, await readableOf(b!)].join('\n');
  };
  const close = async (): Promise<void> => {
    await Promise.all([a!.close(), b!.close()]);
    rmSync(folder, { recursive: true, force: true });
  };
  return { a: a!, b: b!, raw, close };
});
