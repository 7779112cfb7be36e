import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { explain, Problem, WrongUse } from '../failures.ts';

/**
 * Loads an export of the user's module, which may be TypeScript.
 *
 * @throws WrongUse when there is no such module or export, or no loader for TypeScript; Problem when the module can't be loaded.
 */
export async function loadExport(
  { path, name }: { readonly path: string; readonly name: string },
  folder: string,
): Promise<unknown> {
  if (!existsSync(path)) throw new WrongUse(`The file ${path} does not exist.`);
  if (/\.[cm]?tsx?$/.test(path)) await prepareTypeScript(path, folder);
  const module = await importFile(path);
  // A CommonJS module may have its exports under `default` only.
  const found = module[name] ?? (module['default'] as Record<string, unknown> | undefined)?.[name];
  if (found !== undefined) return found;
  const names = Object.keys(module).filter((key) => key !== 'default');
  throw new WrongUse(`${path} exports no '${name}'. It exports ${names.join(', ') || 'nothing'}.`);
}

async function importFile(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    throw new Problem(`${path} can't be loaded: ${explain(error).message}`);
  }
}

/** Lets this process import TypeScript: by `tsx` of the user's project, or else by Node if it can. */
async function prepareTypeScript(path: string, folder: string): Promise<void> {
  let tsx: string;
  try {
    tsx = createRequire(join(folder, 'package.json')).resolve('tsx');
  } catch {
    if ((process.features as { typescript?: unknown }).typescript) return;
    throw new WrongUse(`${path} is TypeScript, and tsx is not installed. Run: npm install --save-dev tsx`);
  }
  await import(pathToFileURL(tsx).href);
}
