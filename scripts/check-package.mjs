// Packs the package like npm, and checks the tarball: publint (the manifest against the files) and attw (the types in every module
// resolution). Removes its files at the end.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-pack-'));

function run(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) {
    process.stderr.write(`${stdout}${stderr}`);
    throw new Error(`${command} ${args.join(' ')} failed`);
  }
  return stdout;
}

try {
  run('node', ['scripts/setup.mjs', '--build']);
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]));
  const tarball = join(folder, packed.filename);
  console.log(run('npx', ['--no-install', 'publint', 'run', tarball, '--strict']).trim());
  console.log(run('npx', ['--no-install', 'attw', tarball, '--profile', 'node16']).trim());
} catch (error) {
  console.error(`check-package: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
