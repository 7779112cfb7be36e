import { defineConfig } from 'tsdown';

const shared = {
  platform: 'node',
  target: 'node20',
  outDir: 'dist',
  fixedExtension: true,
  // The timings of its plugins are of no use here.
  inputOptions: { checks: { pluginTimings: false } },
} as const;

export default defineConfig([
  // One file of `entries/` for each import path of the package, as ES modules and as CommonJS.
  {
    ...shared,
    entry: ['entries/*.ts'],
    format: ['esm', 'cjs'],
    dts: true,
    clean: true,
    // A file of its own for the bundler's helpers. They went into the testing entry, and every CommonJS entry loaded that, and fast-check with it.
    outputOptions: { codeSplitting: { groups: [{ name: 'rolldown-runtime', test: /^\0rolldown/ }] } },
    deps: { skipNodeModulesBundle: true },
  },
  // The command line, which imports the package by its name, so that an application's module and the command use the same code.
  {
    ...shared,
    entry: { cli: 'cli/main.ts' },
    format: 'esm',
    dts: false,
    clean: false,
    deps: { skipNodeModulesBundle: true, neverBundle: [/^genkitx-agents/] },
  },
]);
