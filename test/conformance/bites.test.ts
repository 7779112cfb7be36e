/** Tests the suite itself: runs it on stores that break one rule each, and on Genkit's own two stores. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GenkitError } from 'genkit';
import {
  FileSessionStore as GenkitFileSessionStore,
  InMemorySessionStore as GenkitInMemorySessionStore,
  type SessionStore,
} from 'genkit/beta';
import { afterAll, describe, expect, it } from 'vitest';
import { InMemorySessionStore } from '../../stores/in-memory/in-memory-session-store.ts';
import { sessionStoreConformance, type ConformanceOptions, type OpenOptions, type OpenStores } from './index.ts';
import { Connection } from './support/connection.ts';
import { MUTANTS } from './support/mutants/index.ts';
import { caughtBy, runSuite as run, type Result } from './support/run-suite.ts';

/** Enough to find these faults. Against real stores the suite repeats random tests more often, to find unknown faults. */
const QUICK = { seed: 1, effort: 0.05, shrink: false, watchTimeoutMs: 250 };

const page = fileURLToPath(new URL('../../docs/conformance.md', import.meta.url));

/** The rows of the two tables in docs/conformance.md. */
const faults: string[] = [];
const failures = new Map<string, Map<string, string>>();

const runSuite = (options: ConformanceOptions): Promise<Result[]> => run(options, sessionStoreConformance);

function suiteOf(make: (options: OpenOptions) => SessionStore): ConformanceOptions {
  return {
    ...QUICK,
    name: 'the store under test',
    manifest: { capabilities: new InMemorySessionStore().capabilities, tenants: true, branching: true },
    open: async (options) => {
      const store = make(options);
      const close = async (): Promise<void> => {};
      return { a: store, b: store, reopen: async () => new InMemorySessionStore(options), close };
    },
  };
}

describe('the suite', () => {
  it('passes the correct store from which the faulty ones are made', async () => {
    const options = suiteOf((open) => new InMemorySessionStore(open));
    const results = await runSuite({ ...options, watchTimeoutMs: 5000 });
    expect(results.length).toBeGreaterThan(80);
    expect(results.filter((result) => 'error' in result)).toEqual([]);
  });

  it('passes a correct store with two connections to one backend', async () => {
    const open = async (options: OpenOptions): Promise<OpenStores> => {
      const backend = new InMemorySessionStore(options);
      const connect = (): Connection => new Connection(backend);
      return { a: connect(), b: connect(), reopen: async () => connect(), close: () => backend.close() };
    };
    const { capabilities } = new Connection(new InMemorySessionStore());
    const results = await runSuite({
      ...QUICK,
      watchTimeoutMs: 5000,
      name: 'two connections',
      manifest: { capabilities, tenants: true, branching: true },
      open,
    });
    expect(results.filter((result) => 'error' in result)).toEqual([]);
  });

  it.each(MUTANTS)('catches a store that $fault, in "$subject"', async ({ fault, subject, ...mutant }) => {
    const suite = suiteOf((options) => mutant.make(options));
    const results = await runSuite({ ...suite, subjects: [subject] });
    expect(caughtBy(results)).toEqual([subject]);
    faults.push(`| ${fault} | ${subject} |`);
  });
});

describe('the suite on a store that keeps no scopes', () => {
  const suite = (saveSnapshot: (sound: InMemorySessionStore) => InMemorySessionStore['saveSnapshot']) => {
    const options = suiteOf((open) => {
      const sound = new InMemorySessionStore(open);
      const save = saveSnapshot(sound);
      return Object.assign(sound, { saveSnapshot: save });
    });
    const { manifest } = options;
    const capabilities = { ...manifest.capabilities, scopes: false };
    return runSuite({ ...options, subjects: ['scopes'], manifest: { ...manifest, capabilities } });
  };

  it('passes a store that refuses them', async () => {
    const refusing = (sound: InMemorySessionStore): InMemorySessionStore['saveSnapshot'] => {
      const save = sound.saveSnapshot.bind(sound);
      return async (id, mutator, options) => {
        if (options?.scopes?.length)
          throw new GenkitError({ status: 'FAILED_PRECONDITION', message: 'No scopes here.' });
        return save(id, mutator, options);
      };
    };
    const results = await suite(refusing);
    expect(results.map((result) => 'error' in result)).toEqual([false]);
  });

  it('catches a store that drops them', async () => {
    const dropping = (sound: InMemorySessionStore): InMemorySessionStore['saveSnapshot'] => {
      const save = sound.saveSnapshot.bind(sound);
      return (id, mutator, options) => save(id, mutator, { ...options, scopes: undefined });
    };
    expect(caughtBy(await suite(dropping))).toEqual(['scopes']);
  });
});

describe('the suite on Genkit’s own stores', () => {
  it('finds the rules that the in-memory store breaks', async () => {
    const open = async ({ rejectBranchingSessions }: OpenOptions): Promise<OpenStores> => {
      const store = new GenkitInMemorySessionStore({ rejectBranchingSessions });
      return { a: store, b: store, close: async () => {} };
    };
    const results = await runSuite({
      ...QUICK,
      name: 'Genkit’s InMemorySessionStore',
      manifest: { capabilities: { watch: true }, branching: true, foreign: true },
      open,
    });
    note('memory', results);
    expect(caughtBy(results)).toEqual(
      expect.arrayContaining(['leaf rule', 'terminal statuses', 'values', 'watchers', 'model']),
    );
  });

  it('finds the rules that the file store breaks', async () => {
    const results = await runSuite({
      ...QUICK,
      watchTimeoutMs: 2000,
      name: 'Genkit’s FileSessionStore',
      manifest: { capabilities: { watch: true, durable: true }, tenants: true, branching: true, foreign: true },
      open: openFiles,
    });
    note('files', results);
    const subjects = ['atomic saves', 'terminal statuses', 'values', 'ids', 'tenants', 'model'];
    expect(caughtBy(results)).toEqual(expect.arrayContaining(subjects));
  });

  it('has the results that docs/conformance.md lists', () => {
    if (process.env['UPDATE_DOCS']) rewritePage();
    const text = readFileSync(page, 'utf8');
    for (const row of [...faults, ...failureRows()]) expect(text).toContain(row);
  });
});

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** Opens the store deep inside its own folder, because some of the prefixes lead out of the store's folder. */
async function openFiles(options: OpenOptions): Promise<OpenStores> {
  const folder = mkdtempSync(join(tmpdir(), 'genkit-files-'));
  folders.push(folder);
  const path = join(folder, '1', '2', '3', '4', '5', '6', '7', '8', 'store');
  const make = (): SessionStore => new GenkitFileSessionStore(path, { ...options, snapshotWatchPollIntervalMs: 20 });
  return { a: make(), b: make(), reopen: async () => make(), close: async () => {} };
}

/** Records which tests failed. Replaces the number of repetitions in their names. */
function note(store: 'memory' | 'files', results: readonly Result[]): void {
  for (const result of results) {
    const test = result.test.replace(/ \(seed \d+\)$/, '').replaceAll(/\b\d+\b/g, 'n');
    const row = `| ${result.subject} | ${test} |`;
    const cells = failures.get(row) ?? new Map<string, string>();
    failures.set(row, cells.set(store, 'error' in result ? 'fails' : 'passes'));
  }
}

function failureRows(): string[] {
  const failed = [...failures].filter(([, cells]) => [...cells.values()].includes('fails'));
  return failed.map(([row, cells]) => `${row} ${cells.get('memory') ?? '–'} | ${cells.get('files') ?? '–'} |`);
}

function rewritePage(): void {
  const tables = [faults, failureRows()].map((rows) => rows.join('\n'));
  const [head, found] = readFileSync(page, 'utf8').split('## What it caught');
  const filled = found!.replaceAll(/(\n\|[-|]+\|\n)(\|.*\n)*/g, (_, rule: string) => `${rule}${tables.shift()}\n`);
  writeFileSync(page, `${head}## What it caught${filled}`);
}
