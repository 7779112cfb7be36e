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
  // How long its plugins took is nobody's concern here.
  inputOptions: { checks: { pluginTimings: false } },
  deps: { skipNodeModulesBundle: true },
});
