import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const entry = (name: string) => fileURLToPath(new URL(`./entries/${name}.ts`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^genkitx-agents$/, replacement: entry('index') },
      { find: /^genkitx-agents\/(client|server|testing)$/, replacement: entry('$1') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
  },
});
