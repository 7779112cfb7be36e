import { resolve } from 'node:path';
import type { Firestore } from '@google-cloud/firestore';
import type { ActionContext } from 'genkit';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { checkDirectory } from './check-directory.ts';
import { loadExport } from './load-module.ts';
import { importPackage } from './packages.ts';

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
export interface Opened<T> {
  readonly store: T;
  /** The options for every call. */
  readonly caller: { readonly context?: ActionContext };
  close(): Promise<void>;
}

type Prefix = (() => string) | undefined;

/** How the stores of one kind are opened. */
interface Openers<T> {
  readonly holds: 'sessions' | 'memories';
  /** Whether a directory may be missing; it is then created. */
  readonly isNew?: boolean;
  /** @throws WrongUse when the export of a module is something else. */
  readonly ofExport: (found: unknown) => T;
  readonly ofDirectory: (directory: string, prefix: Prefix) => Promise<T>;
  readonly ofCollection: (place: { db: Firestore; collection: string }, prefix: Prefix) => Promise<T>;
}

/** A parsed URL of a store. */
type StoreUrl =
  | { readonly kind: 'file'; readonly directory: string }
  | { readonly kind: 'firestore'; readonly project: string; readonly collection: string }
  | { readonly kind: 'module'; readonly path: string; readonly name: string };

const FORMS = "'file:DIRECTORY', 'firestore:PROJECT/COLLECTION' or './module.ts#export'";

/** @throws WrongUse when `url` does not name a store. */
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
  throw new WrongUse(`'${url}' does not name a store. Pass ${FORMS}.`);
}

/**
 * Opens the store that a command names.
 *
 * @throws WrongUse when there is none.
 */
export async function openPlace<T extends { close?(): Promise<void> }>(
  { store: url, tenant, context }: StoreOptions,
  io: Pick<Io, 'folder' | 'say'>,
  { holds, isNew = false, ofExport, ofDirectory, ofCollection }: Openers<T>,
): Promise<Opened<T>> {
  const place = parseStoreUrl(url, io.folder);
  const isExport = place.kind === 'module';
  if (isExport && tenant !== undefined)
    throw new WrongUse('An export of a module gets the tenant from the context. Pass --context, not --tenant.');
  if (!isExport && context) throw new WrongUse('--context is only for exports of modules. Pass --tenant.');
  const prefix = tenant === undefined ? undefined : () => tenant;
  let store: T;
  let db: Firestore | undefined;
  if (place.kind === 'module') store = ofExport(await loadExport(place, io.folder));
  else if (place.kind === 'file') {
    if (!isNew) checkDirectory(place.directory, url, { tenant, holds }, io);
    store = await ofDirectory(place.directory, prefix);
  } else {
    const { Firestore } = await importPackage(() => import('@google-cloud/firestore'));
    db = new Firestore({ projectId: place.project });
    store = await ofCollection({ db, collection: place.collection }, prefix);
  }
  const close = async (): Promise<void> => {
    await store.close?.();
    await db?.terminate();
  };
  return { store, caller: context ? { context } : {}, close };
}

/**
 * Loads the value of an option that takes an export of a module.
 *
 * @throws WrongUse when `url` names something else.
 */
export async function loadNamed(option: string, url: string, folder: string): Promise<unknown> {
  const place = parseStoreUrl(url, folder);
  if (place.kind === 'module') return loadExport(place, folder);
  throw new WrongUse(`${option} takes an export of a module, for example ./app.ts#ai, not '${url}'.`);
}
