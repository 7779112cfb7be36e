import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import type { ActionContext } from 'genkit';
import type { SessionStore, SnapshotStore, StoreCapabilities } from 'genkitx-agents';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { checkFileStore } from './check-file-store.ts';
import { importOptional, loadExport } from './load-module.ts';

/** The options of a command that name a store. */
export interface StoreOptions {
  /** `file:DIRECTORY`, `firestore:PROJECT/COLLECTION` or `./module.ts#export`. */
  readonly store: string;
  /** The tenant, for the first two. */
  readonly tenant?: string;
  /** The context of all calls, for the third. */
  readonly context?: ActionContext;
}

/** An open store, and the context of all calls to it. */
export interface OpenStore {
  readonly store: SnapshotStore;
  /** The options for every call. */
  readonly caller: { readonly context?: ActionContext };
  close(): Promise<void>;
}

/** A parsed URL of a store. */
export type StoreUrl =
  | { readonly kind: 'file'; readonly directory: string }
  | { readonly kind: 'firestore'; readonly project: string; readonly collection: string }
  | { readonly kind: 'module'; readonly path: string; readonly name: string };

const FORMS = "'file:DIRECTORY', 'firestore:PROJECT/COLLECTION' or './module.ts#export'";

/** @throws WrongUse when `url` names no store. */
export function parseStoreUrl(url: string, folder: string): StoreUrl {
  if (url.startsWith('file:')) {
    const directory = url.slice('file:'.length).replace(/^\/\/(?=\/)/, '');
    if (directory !== '') return { kind: 'file', directory: resolve(folder, directory) };
  }
  const [, project, collection] = /^firestore:([^/]+)\/([^/]+)$/.exec(url) ?? [];
  if (project !== undefined && collection !== undefined) return { kind: 'firestore', project, collection };
  const [, path, name] = /^((?:\.{0,2}\/|[A-Za-z]:[\\/]|\w).*)#([\w$]+)$/.exec(url) ?? [];
  if (path !== undefined && name !== undefined && !/^(?:file|firestore):/.test(url)) {
    return { kind: 'module', path: resolve(folder, path), name };
  }
  throw new WrongUse(`'${url}' names no store. A store is ${FORMS}.`);
}

/**
 * Opens the store that a command names.
 *
 * @param options.needs The capabilities that the command needs.
 * @param options.isNew Whether the directory of a file store may be missing; it is then created.
 * @throws WrongUse when there is no such store, or it can't do what the command needs.
 */
export async function openStore(
  options: StoreOptions,
  io: Pick<Io, 'folder' | 'say'>,
  { needs, isNew = false }: { needs: readonly (keyof StoreCapabilities)[]; isNew?: boolean },
): Promise<OpenStore> {
  const { store: url, tenant, context } = options;
  const place = parseStoreUrl(url, io.folder);
  if (place.kind === 'module') {
    if (tenant !== undefined) {
      throw new WrongUse(`A store of a module names its tenants by the context: use --context in place of --tenant.`);
    }
    const store = await loadExport(place, io.folder);
    assertStore(store, url, needs);
    return {
      store,
      caller: context ? { context } : {},
      close: async () => (store as Partial<SnapshotStore>).close?.(),
    };
  }
  if (context) throw new WrongUse('--context is for stores of modules: use --tenant.');
  const prefix = tenant === undefined ? {} : { snapshotPathPrefix: () => tenant };
  if (place.kind === 'file') {
    if (!isNew) checkFileStore('session', { directory: place.directory, url, tenant }, io);
    const { FileSessionStore } = await importPackage(() => import('genkitx-agents'));
    const store = new FileSessionStore(place.directory, prefix);
    return { store, caller: {}, close: () => store.close() };
  }
  const { Firestore } = await importOptional<typeof import('@google-cloud/firestore')>('@google-cloud/firestore');
  const { FirestoreSessionStore } = await importPackage(() => import('genkitx-agents/google-cloud'));
  const db = new Firestore({ projectId: place.project });
  const store = new FirestoreSessionStore({ db, collection: place.collection, ...prefix });
  const close = async (): Promise<void> => {
    await store.close();
    await db.terminate();
  };
  return { store, caller: {}, close };
}

function assertStore(
  store: unknown,
  url: string,
  needs: readonly (keyof StoreCapabilities)[],
): asserts store is SnapshotStore {
  const { getSnapshot, saveSnapshot, capabilities } = (store ?? {}) as Partial<SnapshotStore & SessionStore>;
  if (typeof getSnapshot !== 'function' || typeof saveSnapshot !== 'function')
    throw new WrongUse(`'${url}' is no session store.`);
  const missing = needs.filter((need) => !capabilities?.[need]);
  if (missing.length > 0) {
    throw new WrongUse(
      `The store '${url}' can't do what this command needs: its capabilities lack ${missing.join(', ')}.`,
    );
  }
}

/**
 * Imports a part of this package.
 *
 * @param together Packages that the part needs. If one is missing, the error names all that are.
 * @throws WrongUse when a package is not installed.
 */
export async function importPackage<T>(load: () => Promise<T>, together: readonly string[] = []): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const missing = /Cannot find package '([^']+)'/.exec((error as Error).message)?.[1];
    if (missing === undefined) throw error;
    const others = together.includes(missing) ? together.filter((name) => name !== missing && !isInstalled(name)) : [];
    const names = [missing, ...others];
    const what = names.length === 1 ? `The package ${missing} is` : `The packages ${names.join(', ')} are`;
    throw new WrongUse(`${what} not installed. Run: npm install genkitx-agents ${names.join(' ')}`);
  }
}

/** Imports `genkitx-agents/memory`. */
export function importMemory(): Promise<typeof import('genkitx-agents/memory')> {
  return importPackage(() => import('genkitx-agents/memory'), ['minisearch', '@orama/stemmers', '@orama/stopwords']);
}

function isInstalled(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch (error) {
    // Another code: the package is there, and has no main module.
    return (error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND';
  }
}
