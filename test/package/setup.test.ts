import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const SETUP = fileURLToPath(new URL('../../scripts/setup.mjs', import.meta.url));

/** Stands in for the bundler: its files have other names in each build. It ends when another build has begun too. */
const BUILDER = `
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
const [draft] = process.argv.slice(2);
mkdirSync('begun', { recursive: true });
writeFileSync('begun/' + process.pid, '');
while (readdirSync('begun').length < 2) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
mkdirSync(draft, { recursive: true });
writeFileSync(draft + '/chunk-' + process.pid + '.mjs', '');
writeFileSync(draft + '/index.mjs', 'chunk-' + process.pid + '.mjs');
`;

test('two builds at once leave one whole build, and nothing else', async () => {
  const root = mkdtempSync(join(tmpdir(), 'genkitx-agents-setup-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const add = (file: string, content: string): void => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), content);
  };
  for (const file of ['package.json', 'package-lock.json', 'tsconfig.json', 'tsdown.config.ts']) add(file, '{}');
  add('node_modules/.setup-stamp', createHash('sha256').update('{}').digest('hex'));
  add('node_modules/vite/bin/vite.js', '');
  add('scripts/build-package.mjs', BUILDER);
  add('.tmp/builds/999999999/dist/half.mjs', 'of a build that was killed');
  add('dist/old.mjs', 'of other sources');
  cpSync(SETUP, join(root, 'scripts/setup.mjs'));

  const build = async (): Promise<string> => {
    const child = spawn(process.execPath, ['scripts/setup.mjs', '--build'], { cwd: root });
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    expect(code, said).toBe(0);
    return said;
  };
  expect((await Promise.all([build(), build()])).join('')).toMatch(/(Building.*\n[^]*){2}/);
  const chunk = readFileSync(join(root, 'dist/index.mjs'), 'utf8');
  expect(readdirSync(join(root, 'dist')).toSorted()).toEqual(['.build-stamp', chunk, 'index.mjs']);
  expect(readdirSync(join(root, '.tmp/builds'))).toEqual([]);
  expect(await build(), 'of the next').toBe('');
});
