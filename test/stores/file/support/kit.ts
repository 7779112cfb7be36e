import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSessionStore, type FileSessionStoreOptions } from 'genkitx-agents';
import { sessionStoreConformance, type ConformanceOptions } from 'genkitx-agents/testing';
import type { Encryption } from 'genkitx-agents/privacy';
import { describe, it } from 'vitest';
import { nameOf } from '../../kit-name.ts';

/**
 * Runs the conformance kit on separate folders, each with two stores, like two processes.
 *
 * @param encryption Makes one for each store. Default: the stores write in clear.
 */
export function runKit(
  options: FileSessionStoreOptions,
  kit: Pick<ConformanceOptions, 'effort' | 'subjects'>,
  encryption?: () => Encryption,
): void {
  // 'full' differs only in its flushes, which other tests count; 'fast' keeps this suite short.
  const durable = { ...options, durability: 'fast' as const };
  sessionStoreConformance({
    name: nameOf('FileSessionStore', options, encryption !== undefined),
    runner: { describe, it },
    manifest: { capabilities: new FileSessionStore(tmpdir(), durable).capabilities, tenants: true, branching: true },
    ...kit,
    open: async (stage) => {
      const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-kit-'));
      const open = () =>
        new FileSessionStore(folder, { ...durable, ...stage, ...(encryption && { encryption: encryption() }) });
      return {
        a: open(),
        b: open(),
        reopen: async () => open(),
        close: async () => rmSync(folder, { recursive: true, force: true }),
      };
    },
  });
}
