import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** An empty folder that is removed after the test and its `afterEach`, which ends what still writes in it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
