// Builds the package with `tsdown`, into the folder of the argument.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'tsdown';

const folder = process.argv[2];
await build({ logLevel: 'warn', outDir: folder });

// Removes the bundler's comments with file names from the declarations, and indents them by tabs, which take less space. A plugin can't do
// this, because it does not get these files.
for (const name of readdirSync(folder).filter((one) => one.endsWith('.d.cts'))) {
  const path = join(folder, name);
  const text = readFileSync(path, 'utf8').replaceAll(/^\/\/#(?:region|endregion).*\n/gm, '');
  writeFileSync(
    path,
    text.replaceAll(/^(?: {2})+/gm, (indent) => '\t'.repeat(indent.length / 2)),
  );
}
