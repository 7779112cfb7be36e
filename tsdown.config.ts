import { transform } from 'esbuild';
import { defineConfig, type Rolldown, type UserConfig } from 'tsdown';

const shared = {
  platform: 'node',
  target: 'node20',
  outDir: 'dist',
  fixedExtension: true,
  // The timings of its plugins are of no use here.
  inputOptions: { checks: { pluginTimings: false } },
} as const;

/**
 * Half the size, with the names of functions and classes: stack traces show them, and the inspector the class of a store. Lines are cut, because
 * Node prints the whole line of an error that is not caught. What pages load keeps all names, as their own bundlers shorten them: a bundler can't
 * leave out a function that esbuild made keep its name.
 */
const minified: Rolldown.Plugin = {
  name: 'minified',
  async generateBundle({ format }, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== 'chunk' || chunk.fileName.endsWith('.d.cts')) continue;
      const isForPages = format === 'es' && !chunk.imports.some((name) => /^(?:node:|genkit|@genkit)/.test(name));
      const { code } = await transform(chunk.code, {
        ...(isForPages ? { minifyWhitespace: true, minifySyntax: true } : { minify: true, keepNames: true }),
        format: format === 'es' ? 'esm' : 'cjs',
        target: shared.target,
        lineLimit: isForPages ? 200 : 480,
        charset: 'utf8',
        legalComments: 'none',
      });
      chunk.code = code;
    }
  },
};

/** The types are there once, for both formats: the packages that they import have the same types for both. So is the conformance kit, which no page loads. */
const onceForBoth: Rolldown.Plugin = {
  name: 'once-for-both',
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== 'chunk' || !chunk.isEntry || chunk.fileName.endsWith('.d.cts')) continue;
      const { name, exports } = chunk;
      const from = `from './${name}.cjs';\n`;
      this.emitFile({ type: 'asset', fileName: `${name}.d.mts`, source: `export * ${from}` });
      if (name !== 'testing') continue;
      this.emitFile({ type: 'asset', fileName: `${name}.mjs`, source: `export { ${exports.join(', ')} } ${from}` });
    }
  },
};

/** One file of `entries/` for each import path of the package. */
const library: UserConfig = {
  ...shared,
  // A file of its own for the bundler's helpers. They went into the testing entry, and every CommonJS entry loaded that, and fast-check with it.
  outputOptions: { codeSplitting: { groups: [{ name: 'rolldown-runtime', test: /^\0rolldown/ }] } },
  deps: { skipNodeModulesBundle: true },
};

export default defineConfig([
  {
    ...library,
    entry: ['entries/*.ts', '!entries/testing.ts'],
    format: 'esm',
    dts: false,
    clean: true,
    plugins: [minified],
  },
  {
    ...library,
    entry: ['entries/*.ts'],
    format: 'cjs',
    dts: true,
    clean: false,
    plugins: [minified, onceForBoth],
  },
  // The command line, which imports the package by its name, so that an application's module and the command use the same code.
  {
    ...shared,
    entry: { cli: 'cli/main.ts' },
    format: 'esm',
    dts: false,
    clean: false,
    plugins: [minified],
    deps: { skipNodeModulesBundle: true, neverBundle: [/^genkitx-agents/] },
  },
]);
