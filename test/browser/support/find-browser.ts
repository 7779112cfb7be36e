import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome', 'microsoft-edge'];

/** The program that `CHROME_PATH` names, else the first Chromium or Chrome on the PATH; `undefined` when there is none. */
export function findBrowser(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const folders = (env.PATH ?? '').split(delimiter).filter(Boolean);
  const candidates = env.CHROME_PATH
    ? [env.CHROME_PATH]
    : NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  return candidates.find(isExecutable);
}

export const NO_BROWSER = 'No Chromium or Chrome was found: install one, or name it with CHROME_PATH.';

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
