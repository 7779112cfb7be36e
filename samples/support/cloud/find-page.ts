import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Where the chat page is: beside the program that `scripts/pack-sample.mjs` made, else where `npm run build` puts it.
 *
 * @param main The program's `import.meta.url`.
 */
export function findPage(main: string): string {
  const packed = fileURLToPath(new URL('page', main));
  return existsSync(packed) ? packed : fileURLToPath(new URL('../../dist/support-page', main));
}
