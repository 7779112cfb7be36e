import { defineConfig } from 'tsdown';

/** One file of `entries/` for each import path of the package, as ES modules and as CommonJS. */
export default defineConfig({
  entry: ['entries/*.ts'],
  format: ['esm', 'cjs'],
  dts: true,
  platform: 'node',
  target: 'node20',
  outDir: 'dist',
  clean: true,
  fixedExtension: true,
  // The timings of its plugins are of no use here.
  inputOptions: { checks: { pluginTimings: false } },
  // A file of its own for the bundler's helpers. They went into the testing entry, and every CommonJS entry loaded that, and fast-check with it.
  outputOptions: { codeSplitting: { groups: [{ name: 'rolldown-runtime', test: /^\0rolldown/ }] } },
  deps: { skipNodeModulesBundle: true },
});
