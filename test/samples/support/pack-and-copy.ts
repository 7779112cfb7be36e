import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root, run } from '../../package/packed.ts';

/**
 * Packs a sample as its README says, and copies it to where nothing of the checkout can be found. `npm install` is stood in for: what the
 * package.json names is linked, the tarball unpacked, and what the package in it names is linked as well.
 */
export function packAndCopy(name: string): string {
  run(root, 'node', ['scripts/pack-sample.mjs', name]);
  const copy = mkdtempSync(join(tmpdir(), `support-${name}-`));
  cpSync(join(root, 'samples', name), copy, { recursive: true });
  const install = (folder: string): void => {
    const text = readFileSync(join(folder, 'package.json'), 'utf8');
    const { dependencies } = JSON.parse(text) as { dependencies: Record<string, string> };
    for (const [dependency, version] of Object.entries(dependencies)) {
      const place = join(copy, 'node_modules', dependency);
      mkdirSync(dirname(place), { recursive: true });
      if (version.startsWith('file:')) {
        mkdirSync(place);
        run(place, 'tar', ['-xzf', join(copy, version.slice('file:'.length)), '--strip-components=1']);
        install(place);
      } else {
        symlinkSync(join(root, 'node_modules', dependency), place);
      }
    }
  };
  install(copy);
  return copy;
}
