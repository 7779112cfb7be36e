// Builds the package as `tsdown` does, into the folder that the argument names.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'tsdown';

const folder = process.argv[2];
await build({ logLevel: 'warn', outDir: folder });

// Declarations go without the bundler's comments that say which file each is from. No plugin gets them.
for (const name of readdirSync(folder).filter((one) => one.endsWith('.d.cts'))) {
  const path = join(folder, name);
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/^\/\/#(?:region|endregion).*\n/gm, ''));
}
