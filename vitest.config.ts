import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const entry = (name: string) => fileURLToPath(new URL(`./entries/${name}.ts`, import.meta.url));

/** They share one emulator, which is started for them only. */
const FIRESTORE_TESTS = [
  'test/stores/firestore/**/*.test.ts',
  'test/samples/**/*.test.ts',
  'test/migrate/firestore/**/*.test.ts',
];

export default defineConfig({
  resolve: {
    alias: [
      { find: /^genkitx-agents$/, replacement: entry('index') },
      { find: /^genkitx-agents\/(client|context|server|testing|google-cloud|firebase)$/, replacement: entry('$1') },
    ],
  },
  test: {
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Many tests wait for other processes, for the emulator above all: while one waits another runs, also on two cores.
    maxWorkers: Math.max(2, availableParallelism()),
    projects: [
      {
        extends: true,
        test: { name: 'local', include: ['test/**/*.test.ts', 'test/**/*.test.tsx'], exclude: FIRESTORE_TESTS },
      },
      {
        extends: true,
        test: { name: 'firestore', include: FIRESTORE_TESTS, globalSetup: 'test/support/emulator-setup.ts' },
      },
    ],
  },
});
