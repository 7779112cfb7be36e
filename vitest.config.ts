import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

const entry = (name: string) => fileURLToPath(new URL(`./entries/${name}.ts`, import.meta.url));

/** They share one emulator, which is started for them only. */
const FIRESTORE_TESTS = [
  'test/stores/firestore/**/*.test.ts',
  'test/migrate/firestore/**/*.test.ts',
  'test/privacy/firestore/**/*.test.ts',
];

/** They count what their process does or holds, fill its memory, or set up its telemetry, which Genkit does once a process. */
const ALONE_TESTS = [
  'test/agent/soak.test.ts',
  'test/agent/turn/traces.test.ts',
  'test/agent/turn/turn-cost.test.ts',
  'test/context/spans.test.ts',
  'test/session/session-state.test.ts',
];

/** They set up telemetry. */
const FIRESTORE_ALONE_TESTS = [
  'test/stores/firestore/kit/session-state.test.ts',
  'test/stores/firestore/client/spans.test.ts',
];

/** `npm run test:slow`: browsers, the packed package in empty projects, its API and docs, the samples. */
const SLOW_TESTS = [
  'test/browser/**/*.test.ts',
  'test/docs/examples.test.ts',
  'test/docs/hovers.test.ts',
  'test/inspector/command.test.ts',
  'test/package/api-surface.test.ts',
  'test/package/install.test.ts',
  'test/react/pages.test.ts',
  'test/samples/**/*.test.ts',
];

/** Also slow: the deployed samples, many sessions, other versions of the client. */
const SLOW_FIRESTORE_TESTS = [
  'test/samples/deployed.test.ts',
  'test/stores/firestore/client/client-versions.test.ts',
  'test/stores/firestore/remove/erase-user.test.ts',
];

export default defineConfig({
  resolve: {
    alias: [
      { find: /^genkitx-agents$/, replacement: entry('index') },
      {
        find: /^genkitx-agents\/(client|context|inspector|memory|privacy|react|server|testing|google-cloud|firebase)$/,
        replacement: entry('$1'),
      },
    ],
  },
  test: {
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Many tests wait for other processes, for the emulator and the browser above all: while one waits another runs.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/memory-folder.ts'],
    setupFiles: ['test/support/wait-timeout.ts'],
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'local',
          include: ['test/**/*.test.ts'],
          exclude: [...FIRESTORE_TESTS, ...ALONE_TESTS, ...SLOW_TESTS],
          // Files share a process: importing Genkit takes longer than most of them.
          isolate: false,
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE_TESTS } },
      {
        extends: true,
        test: { name: 'slow', include: SLOW_TESTS, exclude: SLOW_FIRESTORE_TESTS },
      },
      {
        extends: true,
        test: {
          name: 'slow firestore',
          include: SLOW_FIRESTORE_TESTS,
          globalSetup: ['test/support/emulator-setup.ts'],
          setupFiles: ['test/stores/firestore/support/end-clients.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'firestore',
          include: FIRESTORE_TESTS,
          exclude: [...FIRESTORE_ALONE_TESTS, ...SLOW_FIRESTORE_TESTS],
          globalSetup: ['test/support/emulator-setup.ts'],
          setupFiles: ['test/stores/firestore/support/end-clients.ts'],
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'firestore alone',
          include: FIRESTORE_ALONE_TESTS,
          globalSetup: ['test/support/emulator-setup.ts'],
          setupFiles: ['test/stores/firestore/support/end-clients.ts'],
        },
      },
    ],
  },
});
