// Checks that a release is ready, and publishes it: `npm run release -- --dry-run` only checks. The version of package.json must have a section in
// CHANGELOG.md, the work tree must be clean, and the packed package must pass `npm run check`, have both formats, and be below its size limit.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const MAX_UNPACKED_BYTES = 3_000_000;
const isDryRun = process.argv.includes('--dry-run');

const unknown = process.argv.slice(2).find((argument) => argument !== '--dry-run');
if (unknown !== undefined) {
  console.error(`release: unknown option '${unknown}'; the only option is --dry-run.`);
  process.exit(2);
}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Each check returns the problem, or undefined. */
const checks = {
  'version is SemVer': () => (/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version) ? undefined : `package.json says '${version}'`),
  'changelog has the version': () => {
    const section = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
      .split(/^## /m)
      .find((part) => part.startsWith(`${version} `));
    if (!section) return `add a section '## ${version} (date)' to CHANGELOG.md`;
    return section.trim().split('\n').length > 1 ? undefined : `the section of ${version} in CHANGELOG.md is empty`;
  },
  'work tree is clean': () =>
    run('git', ['status', '--porcelain']).stdout.trim() === '' ? undefined : 'commit or stash the changes',
  'version is not tagged yet': () =>
    run('git', ['tag', '--list', `v${version}`]).stdout.trim() === ''
      ? undefined
      : `tag v${version} exists; raise the version`,
  'types, lint, dead code, API, words, package in both formats': () => {
    const { status, stdout, stderr } = run('npm', ['run', 'check']);
    return status === 0 ? undefined : `npm run check fails:\n${tail(stdout + stderr)}`;
  },
  'size of the package': () => {
    const { status, stdout, stderr } = run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts']);
    if (status !== 0) return `npm pack fails:\n${tail(stderr)}`;
    const [{ unpackedSize }] = JSON.parse(stdout);
    const kilobytes = Math.round(unpackedSize / 1000);
    return unpackedSize <= MAX_UNPACKED_BYTES
      ? undefined
      : `${kilobytes} kB unpacked, the limit is ${MAX_UNPACKED_BYTES / 1000} kB`;
  },
};

let failures = 0;
for (const [name, check] of Object.entries(checks)) {
  const fault = check();
  console.log(`${fault === undefined ? 'ok  ' : 'FAIL'} ${name}${fault === undefined ? '' : `: ${fault}`}`);
  if (fault !== undefined) failures++;
}
if (failures > 0) {
  console.error(`release: ${version} is not ready.`);
  process.exit(1);
}
if (isDryRun) {
  console.log(`release: ${version} is ready; run 'npm run release' to tag and publish it.`);
} else {
  mustRun('git', ['tag', `v${version}`]);
  mustRun('npm', ['publish']);
  console.log(`release: ${version} is published; push the tag v${version}.`);
}

function run(command, args) {
  return spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
}

function mustRun(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status === 0) return;
  console.error(`release: '${command} ${args.join(' ')}' failed.`);
  process.exit(1);
}

function tail(text) {
  return text.split('\n').slice(-20).join('\n');
}
