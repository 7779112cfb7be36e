import { WrongUse } from '../failures.ts';

/**
 * Imports a part of this package, or a package that it needs.
 *
 * @param together Packages that the part needs. If one is missing, the error names all of them.
 * @throws WrongUse when a package is not installed.
 */
export async function importPackage<T>(load: () => Promise<T>, together: readonly string[] = []): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const missing = /Cannot find package '([^']+)'/.exec((error as Error).message)?.[1];
    if (missing === undefined) throw error;
    const names = together.includes(missing) ? together : [missing];
    throw new WrongUse(`The package ${missing} is not installed. Run: npm install genkitx-agents ${names.join(' ')}`);
  }
}

/** Imports `genkitx-agents/memory`. */
export function importMemory(): Promise<typeof import('genkitx-agents/memory')> {
  return importPackage(() => import('genkitx-agents/memory'), ['minisearch', '@orama/stemmers', '@orama/stopwords']);
}
