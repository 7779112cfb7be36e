import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileMemoryStore } from 'genkitx-agents/memory';
import { envelope, localKeys } from 'genkitx-agents/privacy';
import { memoryStoreConformance } from 'genkitx-agents/testing';
import { describe, it } from 'vitest';

/** The names and contents of all files below a folder. */
function dump(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .map((path) => (statSync(path).isFile() ? `${path}\n${readFileSync(path, 'latin1')}` : path))
    .join('\n');
}

for (const isEncrypted of [false, true]) {
  const encryption = isEncrypted ? { encryption: envelope({ keys: localKeys('k'.repeat(32)) }) } : {};
  memoryStoreConformance({
    name: isEncrypted ? 'FileMemoryStore with encryption' : 'FileMemoryStore',
    runner: { describe, it },
    capabilities: { shared: true, vectorDimensions: 4096 },
    tenants: true,
    effort: isEncrypted ? 0.03 : 0.1,
    open: async (options) => {
      const folder = mkdtempSync(join(tmpdir(), 'memories-'));
      const make = (): FileMemoryStore =>
        new FileMemoryStore(folder, { ...options, ...encryption, durability: 'fast' });
      const [a, b] = [make(), make()];
      return {
        a,
        b,
        reopen: async () => make(),
        dump: async () => dump(folder),
        close: async () => {
          await Promise.all([a.close(), b.close()]);
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
  });
}
