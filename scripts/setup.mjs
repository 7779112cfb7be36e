// Prepares a checkout: installs the packages of the lock file, with --build builds the package and its pages, with --bench installs the packages
// of the bench. Skips steps that are up to date, and prints the others. Uses only Node, because it runs before the installation.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const NEEDED_NODE = [20, 19];
const SOURCES = [
  'cli',
  'entries',
  'src',
  'stores',
  'plugins',
  'test/conformance',
  'test/support',
  'samples/support/page',
  'ui',
];
const CONFIGS = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsdown.config.ts'];

function main() {
  checkNode();
  install('.', 'the dependencies');
  if (process.argv.includes('--build')) build();
  if (process.argv.includes('--bench'))
    install('bench/extra', 'what only the bench needs, SQLite to be compiled among it,');
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > NEEDED_NODE[0] || (major === NEEDED_NODE[0] && minor >= NEEDED_NODE[1])) return;
  fail(`Node ${NEEDED_NODE.join('.')} or newer is needed; this is ${process.versions.node}.`);
}

function install(folder, what) {
  const wanted = sha256(readFileSync(join(root, folder, 'package-lock.json')));
  const stamp = join(root, folder, 'node_modules', '.setup-stamp');
  if (read(stamp) === wanted) return;
  say(`Installing ${what} that ${join(folder, 'package-lock.json')} names (once; it takes a minute or two) ...`);
  run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], folder);
  writeFileSync(stamp, wanted);
}

/** Builds into a folder of its own, and moves it to its place when it is complete, because another build or a server that reads dist may run. */
function build() {
  const wanted = fingerprint();
  const dist = join(root, 'dist');
  if (read(join(dist, '.build-stamp')) === wanted) return;
  say('Building the package and its pages ...');
  // Tests set another value, and the pages would get React's development build.
  process.env.NODE_ENV = 'production';
  const folder = newBuildFolder();
  const draft = join(folder, 'dist');
  // Calls the function, because the command warns about Node 20, which the package supports.
  run('node', ['scripts/build-package.mjs', draft]);
  for (const [page, name] of Object.entries({ 'ui/inspector': 'inspector', 'samples/support/page': 'support-page' })) {
    const options = ['--config', `${page}/vite.config.ts`, '--outDir', join(draft, name), '--logLevel', 'warn'];
    run('node', ['node_modules/vite/bin/vite.js', 'build', ...options]);
  }
  writeFileSync(join(draft, '.build-stamp'), wanted);
  replaceFolder(dist, draft, join(folder, 'old'));
}

/** A folder with the id of this process. It is removed at the end of the process; folders of dead processes are removed now. */
function newBuildFolder() {
  const builds = join(root, '.tmp', 'builds');
  const folder = join(builds, String(process.pid));
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(builds)) if (!isRunning(Number(name))) remove(join(builds, name));
  process.once('exit', () => remove(folder));
  return folder;
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function replaceFolder(folder, draft, old) {
  for (;;) {
    remove(old);
    try {
      if (existsSync(folder)) renameSync(folder, old);
      return renameSync(draft, folder);
    } catch (error) {
      // Another build moved the folder at this moment.
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(error.code) || !existsSync(draft)) throw error;
    }
  }
}

/** A hash that changes if a source file is added, removed or edited. */
function fingerprint() {
  const lines = CONFIGS.map((file) => `${file} ${sha256(readFileSync(join(root, file)))}`);
  for (const folder of SOURCES)
    lines.push(...filesBelow(folder).map((file) => `${file} ${sha256(readFileSync(join(root, file)))}`));
  return sha256(lines.join('\n'));
}

function filesBelow(folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((file) => statSync(join(root, file)).isFile())
    .toSorted();
}

function run(command, args, folder = '.') {
  const windows = process.platform === 'win32';
  const { status, error } = spawnSync(command, args, { cwd: join(root, folder), stdio: 'inherit', shell: windows });
  if (error) fail(`${command} could not be started: ${error.message}`);
  if (status !== 0) fail(`'${command} ${args.join(' ')}' failed (exit code ${status}); its output is above.`);
}

function remove(path) {
  rmSync(path, { recursive: true, force: true });
}

function read(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

function sha256(data) {
  return createHash('sha256').update(data).digest('hex');
}

function say(text) {
  console.error(`setup: ${text}`);
}

function fail(text) {
  say(text);
  process.exit(1);
}

main();
