import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** As far below the root as the server of the sample, which finds its page from there. */
const SCRIPTS = join(ROOT, '.tmp/scripts/built');

/** Packages of which a store needs an error class and a logger, and whose modules do nothing that those need when they are loaded. */
const HEAVY = /\/node_modules\/(genkit|@genkit-ai|@opentelemetry)\//;

/** How {@link childScript} makes the script. */
export interface ChildScriptOptions {
  /**
   * All packages are in the file, of Genkit only what the script calls: its process is ready in a quarter of the time. Not for a script that
   * works with an agent, or with a package that is not plain JavaScript. Default: false.
   */
  isWhole?: boolean;
}

const entry = (name: string) => join(ROOT, `entries/${name}.ts`);

/**
 * The path of a script as one file of plain JavaScript: a process that runs it is ready in half the time that compiling its modules one by one
 * takes. Tests that start hundreds of processes need it.
 */
export async function childScript(script: URL, { isWhole = false }: ChildScriptOptions = {}): Promise<string> {
  const path = fileURLToPath(script);
  const result = await build({
    configFile: false,
    logLevel: 'warn',
    root: ROOT,
    resolve: {
      alias: [
        { find: /^genkitx-agents$/, replacement: entry('index') },
        { find: /^genkitx-agents\/(.+)$/, replacement: entry('$1') },
      ],
    },
    ssr: { noExternal: isWhole || undefined },
    build: {
      ssr: path,
      write: false,
      minify: false,
      rolldownOptions: {
        treeshake: { moduleSideEffects: (id) => !isWhole || !HEAVY.test(id) },
        output: { codeSplitting: false },
      },
    },
  });
  if (!('output' in result)) throw new Error('invariant: it is built once');
  const file = join(SCRIPTS, relative(ROOT, path).replaceAll(/[/\\]/g, '-').replace(/\.ts$/, '.mjs'));
  mkdirSync(SCRIPTS, { recursive: true });
  // Others may start it at this moment.
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, result.output[0].code);
  renameSync(draft, file);
  return file;
}
