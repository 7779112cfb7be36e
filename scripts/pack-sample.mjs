// Prepares a sample for deployment: `node scripts/pack-sample.mjs cloud-run` (or firebase) builds and packs this package, bundles the sample's
// code into one file, and copies both and the chat page into samples/<name>/build. After that the folder samples/<name> needs no other files:
// copy it anywhere, and deploy it.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** Other files to deploy. */
const MORE = { 'cloud-run': [], firebase: ['firestore.rules', 'firestore.indexes.json'] };

const name = process.argv[2] ?? '';
if (!Object.hasOwn(MORE, name)) fail(`name a sample: ${Object.keys(MORE).join(' or ')}.`);
const sample = join(root, 'samples', name);
const target = join(sample, 'build');

run('node', ['scripts/setup.mjs', '--build']);
rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const [packed] = JSON.parse(run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', target]));
renameSync(join(target, packed.filename), join(target, 'genkitx-agents.tgz'));
for (const file of MORE[name]) cpSync(join(root, file), join(target, file));
cpSync(join(root, 'dist', 'support-page'), join(target, 'page'), { recursive: true });

const { build } = await import('tsdown');
await build({
  config: false,
  entry: [join(sample, 'main.ts')],
  outDir: target,
  clean: false,
  dts: false,
  format: 'esm',
  fixedExtension: true,
  platform: 'node',
  target: 'node20',
  logLevel: 'warn',
  // Not bundled: the package is installed from its tarball.
  deps: { skipNodeModulesBundle: true, neverBundle: [/^genkitx-agents/] },
});
if (!existsSync(join(target, 'main.mjs'))) fail('the build made no bundle.');
console.log(`samples/${name}/build is ready.`);

function run(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) fail(`'${command} ${args.join(' ')}' failed.\n${stdout}${stderr}`);
  return stdout;
}

function fail(text) {
  console.error(`pack-sample: ${text}`);
  process.exit(1);
}
