/** The package as npm would publish it, and projects that have it and nothing but the packages they name. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a command to its end and answers what it printed. */
export function run(cwd: string, command: string, args: string[]): string {
  const env = { ...process.env, GENKIT_ENV: 'prod' };
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`);
  return stdout;
}

/** The rows of the README's table: each import path of the package, with the packages that it needs. */
export function neededPackages(): Map<string, string[]> {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const rows = [...readme.matchAll(/^\| `(genkitx-agents[/\w-]*)` \| (.*) \|$/gm)];
  return new Map(rows.map(([, path, cell]) => [path!, [...cell!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)]));
}

/** What `npm pack --json` prints of a package. */
interface Packing {
  filename: string;
  unpackedSize: number;
  files: { path: string; size: number }[];
}

/** A packed tarball in a folder of its own outside the checkout, where nothing of the checkout can be resolved. */
export class Packed {
  readonly folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-packed-'));
  readonly tarball: string;
  /** Of the tarball, unpacked. */
  readonly bytes: number;
  /** The files in it with their sizes, the largest first. */
  readonly contents: readonly { path: string; size: number }[];

  constructor() {
    run(root, 'node', ['scripts/setup.mjs', '--build']);
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', this.folder];
    const [packed] = JSON.parse(run(root, 'npm', args)) as [Packing];
    this.tarball = join(this.folder, packed.filename);
    this.bytes = packed.unpackedSize;
    this.contents = packed.files.toSorted((a, b) => b.size - a.size);
  }

  /**
   * A project with the unpacked tarball and links to the packages it names. Node and TypeScript resolve what a linked package needs from where it
   * really is, and what ours imports from this project alone: a package that is not named can't be found.
   */
  project(name: string, packages: readonly string[], type: 'module' | 'commonjs' = 'module'): string {
    const home = join(this.folder, name);
    const unpacked = join(home, 'node_modules', 'genkitx-agents');
    mkdirSync(unpacked, { recursive: true });
    run(home, 'tar', ['-xzf', this.tarball, '--strip-components=1', '-C', unpacked]);
    writeFileSync(
      join(home, 'package.json'),
      JSON.stringify({ name: 'project', version: '1.0.0', private: true, type }),
    );
    for (const dependency of packages) {
      const link = join(home, 'node_modules', dependency);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(join(root, 'node_modules', dependency), link);
    }
    return home;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Runs a line of code in a project and answers what it prints. */
export async function evaluate(home: string, format: 'module' | 'commonjs', code: string): Promise<string> {
  const args = [`--input-type=${format}`, '--eval', code];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: home,
    env: { ...process.env, GENKIT_ENV: 'prod' },
  });
  return stdout.trim();
}
