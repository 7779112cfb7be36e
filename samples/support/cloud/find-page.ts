import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * The folder of the chat page: next to the program that `scripts/pack-sample.mjs` made, else the folder of `npm run build`.
 *
 * @param main The program's `import.meta.url`.
 */
export function findPage(main: string): string {
  const packed = fileURLToPath(new URL('page', main));
  return existsSync(packed) ? packed : fileURLToPath(new URL('../../dist/support-page', main));
}
