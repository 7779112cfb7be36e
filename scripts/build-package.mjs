// Builds the package as `tsdown` does, into the folder that the argument names.
import { build } from 'tsdown';

await build({ logLevel: 'warn', outDir: process.argv[2] });
