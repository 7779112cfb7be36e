import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';

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
  /** Whether its name has a hash of its content. */
  readonly isHashed: boolean;
}

/** The folder with `package.json`: above the built files, or above the sources. */
const HOME = new URL(import.meta.url.endsWith('.ts') ? '../../../' : '../', import.meta.url);

/**
 * The files of the built page, by their paths; no other file can be requested. They are stored compressed (`index.html.br`) and sent
 * uncompressed, because they do not leave this machine.
 *
 * @param folder Default: the folder of the build. The result is empty if the page was not built.
 */
export function readPage(folder = builtPage()): ReadonlyMap<string, PageFile> {
  if (folder === undefined) return new Map();
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.br'));
  return new Map(
    names.flatMap((stored): [string, PageFile][] => {
      const name = stored.slice(0, -'.br'.length).replaceAll('\\', '/');
      const type = TYPES[extname(name)];
      if (type === undefined) return [];
      const bytes = new Uint8Array(brotliDecompressSync(readFileSync(join(folder, stored))));
      return [[name, { bytes, type, isHashed: /[-.][\w-]{8,}\.\w+$/.test(name) }]];
    }),
  );
}

function builtPage(): string | undefined {
  const folder = fileURLToPath(new URL('dist/inspector/', HOME));
  return existsSync(join(folder, 'index.html.br')) ? folder : undefined;
}

/** The version of the package. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(new URL('package.json', HOME), 'utf8')) as { version: string }).version;
}
