import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const COMMANDS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/**
 * Opens an address with a token in the browser. The browser gets a file that redirects to the address, because other users of the machine
 * can read the arguments of processes. Does nothing without a browser.
 *
 * @returns A function that removes the file.
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
