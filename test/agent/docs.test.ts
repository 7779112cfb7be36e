import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

/** The TypeScript examples of a page that begin with the name of their file. */
function examplesOf(page: string): { name: string; code: string }[] {
  const blocks = readFileSync(join(ROOT, 'docs', page), 'utf8').matchAll(/```ts\n\/\/ (\S+\.ts)\n([\s\S]*?)```/g);
  return [...blocks].map(([, name, code]) => ({ name: name!, code: code! }));
}

/** What the example says that it prints: the text after each `// →` behind a `console.log`. */
function promised(code: string): string[] {
  return [...code.matchAll(/console\.log\(.*\/\/ → (.*)$/gm)].map(([, text]) => text!);
}

test.each(['agents.md', 'migrating.md'])('the examples of docs/%s run and print what they say', async (page) => {
  const examples = examplesOf(page);
  expect(examples.length).toBeGreaterThan(0);
  const dir = await mkdtemp(join(ROOT, 'test/agent/.docs-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  for (const { name, code } of examples) await writeFile(join(dir, name), code);
  await writeFile(join(dir, 'package.json'), '{"type":"module"}');
  for (const { name, code } of examples) {
    const env = { ...process.env, TSX_TSCONFIG_PATH: join(ROOT, 'tsconfig.json') };
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', join(dir, name)], {
      cwd: ROOT,
      env,
    });
    const lines = stdout.trimEnd().split('\n');
    for (const text of promised(code)) expect(lines, `${page}: ${name}`).toContain(text);
  }
});
