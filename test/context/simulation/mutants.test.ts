import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { childScript } from '../../support/child-script.ts';
import { isTorture, scale, seed } from '../../support/scale.ts';
import { MUTANTS, type Mutant } from './mutants.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const FOLDERS = ['src', 'stores/in-memory', 'test/support', 'test/context'];
/** `npm test` plants a few of the faults, others with each seed; the long run plants all. */
const planted = Array.from({ length: scale(2, MUTANTS.length) }, (_, i) => MUTANTS[(seed * 3 + i) % MUTANTS.length]!);

let copy: string;

beforeAll(() => {
  // Inside the checkout, so that the copy finds its packages.
  mkdirSync(join(root, '.tmp'), { recursive: true });
  copy = mkdtempSync(join(root, '.tmp', 'mutants-'));
  for (const folder of FOLDERS) cpSync(join(root, folder), join(copy, folder), { recursive: true });
});

afterAll(() => rmSync(copy, { recursive: true, force: true }));

/** Runs the simulation on the copy. */
async function run(): Promise<{ code: number; output: string }> {
  const script = await childScript(pathToFileURL(join(copy, 'test/context/simulation/run.ts')));
  return new Promise((resolve) => {
    const args = [script, String(seed), '40'];
    execFile(
      process.execPath,
      args,
      { cwd: root, maxBuffer: 1e8, timeout: 100_000, killSignal: 'SIGKILL' },
      (error, stdout) => {
        rmSync(script);
        resolve({ code: error ? Number(error.code ?? -1) : 0, output: stdout });
      },
    );
  });
}

function place({ file, find }: Mutant): { path: string; text: string } {
  const path = join(copy, 'src/context', file);
  const text = readFileSync(path, 'utf8');
  expect(text.split(find), `${find} stands once in ${file}`).toHaveLength(2);
  return { path, text };
}

function plant(mutant: Mutant): () => void {
  const { find, replace } = mutant;
  const { path, text } = place(mutant);
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  return () => writeFileSync(path, text);
}

describe('coverage: the checker finds', () => {
  // In `npm test` the coverage test says so.
  it.runIf(isTorture)('nothing wrong with the window itself', async () => {
    expect(await run()).toMatchObject({ code: 0 });
  });

  // Only a few of them are planted in one run of `npm test`.
  it('every fault, so far as its place in the code is still there', () => {
    for (const mutant of MUTANTS) place(mutant);
  });

  it.each(planted)('$what', async (mutant) => {
    const remove = plant(mutant);
    try {
      const { code, output } = await run();
      expect(code, 'the faulty window passed').toBe(1);
      expect(output, 'it is found as a wrong window, and not by a crash').toMatch(/^seed \d+, session \d+:/m);
    } finally {
      remove();
    }
  });
});
