import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

/** A file of the page. */
export interface PageFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
  /** Its name changes with its content. */
  readonly isHashed: boolean;
}

/** Beside the built module; in the checkout where the build puts it. */
const FOLDERS = ['./inspector/', '../../../dist/inspector/'];

/**
 * The files of the built page, by their paths below it; nothing else can be asked for.
 *
 * @param folder Default: where the build puts the page. There are none if it was not built.
 */
export function readPage(folder = builtPage()): ReadonlyMap<string, PageFile> {
  if (folder === undefined) return new Map();
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return new Map(
    names.flatMap((name): [string, PageFile][] => {
      const type = TYPES[extname(name)];
      if (type === undefined) return [];
      const isHashed = /[-.][\w-]{8,}\.\w+$/.test(name);
      return [
        [name.replaceAll('\\', '/'), { bytes: new Uint8Array(readFileSync(join(folder, name))), type, isHashed }],
      ];
    }),
  );
}

function builtPage(): string | undefined {
  return FOLDERS.map((folder) => fileURLToPath(new URL(folder, import.meta.url))).find((folder) =>
    existsSync(join(folder, 'index.html')),
  );
}

/** The version of the package that this module belongs to. */
export function packageVersion(): string {
  const manifest = ['../package.json', '../../../package.json']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((path) => existsSync(path));
  return manifest === undefined ? '' : (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}
