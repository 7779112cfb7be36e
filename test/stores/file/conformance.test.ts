import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSessionStore } from 'genkitx-agents';
import { sessionStoreConformance } from 'genkitx-agents/testing';
import { describe, it } from 'vitest';

// 'full' differs in when it flushes only, which its own tests count; 'fast' keeps this suite short.
for (const options of [{}, { checkpointInterval: 1 }, { checkpointInterval: 3 }]) {
  const durable = { ...options, durability: 'fast' as const };
  sessionStoreConformance({
    name: `FileSessionStore ${JSON.stringify(options)}`,
    runner: { describe, it },
    capabilities: new FileSessionStore(tmpdir(), durable).capabilities,
    effort: 'checkpointInterval' in options ? 0.1 : 0.5,
    open: async (stage) => {
      const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-kit-'));
      const open = () => new FileSessionStore(folder, { ...durable, ...stage });
      return {
        a: open(),
        b: open(),
        reopen: async () => open(),
        close: async () => rmSync(folder, { recursive: true, force: true }),
      };
    },
  });
}
