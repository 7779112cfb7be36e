/** 100 KB of each kind of text that the repository and its tools have. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

const below = (folder: string, ending: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .toSorted()
    .map((name) => readFileSync(join(root, folder, name), 'utf8'))
    .join('\n');

/** The compiler's messages are sentences, translated by people. */
const messages = (language: string) => {
  const file = join(root, 'node_modules/typescript/lib', language, 'diagnosticMessages.generated.json');
  return Object.values(JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>).join('\n');
};

const orders = () =>
  JSON.stringify(
    Array.from({ length: 1_000 }, (_, i) => ({
      id: `ord_${(i * 7_919).toString(36)}`,
      customer: { name: 'Ada Lovelace', email: `user${i}@example.com` },
      total: (i * 1_337) / 100,
      items: [{ sku: `KX-${i}`, quantity: i % 7 }],
      at: new Date(1.7e12 + i * 86_400_000).toISOString(),
      isPaid: i % 2 === 0,
    })),
  );

const READERS: readonly (readonly [string, () => string])[] = [
  ['English', () => below('docs', '.md')],
  ['German', () => messages('de')],
  ['Chinese', () => messages('zh-cn')],
  ['TypeScript', () => below('src', '.ts')],
  ['JSON of a lock file', () => readFileSync(join(root, 'package-lock.json'), 'utf8')],
  ['JSON of orders', orders],
];

const BYTES = 100 * 1024;

/** Name and text. */
export const TEXTS: readonly (readonly [string, string])[] = READERS.map(([name, read]) => {
  const bytes = Buffer.from(read()).subarray(0, BYTES);
  if (bytes.length < BYTES) throw new Error(`There are only ${bytes.length} bytes of ${name}.`);
  // The cut may fall into a character.
  return [name, bytes.toString('utf8').replace(/\uFFFD+$/, '')];
});
