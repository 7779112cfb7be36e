// Builds the package into dist, as `tsdown` does.
import { build } from 'tsdown';

await build({ logLevel: 'warn' });
