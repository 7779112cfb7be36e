import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const COMMANDS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/**
 * Opens an address with a token in the browser, by a file that leads there: the arguments of processes can be read by other users of the
 * machine. Where there is no browser nothing happens.
 *
 * @returns Removes the file.
 */
export function openBrowser(address: string): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-inspect-'));
  const file = join(folder, 'open.html');
  writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0;url=${address}">`, { mode: 0o600 });
  const [command, ...args] = COMMANDS[process.platform] ?? ['xdg-open'];
  spawn(command!, [...args, file], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref();
  return () => rmSync(folder, { recursive: true, force: true });
}
