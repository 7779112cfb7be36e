import type { ActionContext } from 'genkit';
import type { MemoryManager, MemoryStore } from 'genkitx-agents/memory';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { checkFileStore } from './check-file-store.ts';
import { importOptional, loadExport } from './load-module.ts';
import { importMemory, importPackage, parseStoreUrl, type StoreOptions } from './open-store.ts';

/** Open memories. For a store, the manager runs no jobs. */
export interface OpenMemories {
  readonly manager: MemoryManager;
  /** Whether the manager is the application's, which knows the sessions that it learns from. */
  readonly knowsSessions: boolean;
  readonly caller: { readonly context?: ActionContext };
  close(): Promise<void>;
}

/**
 * Opens the memories that a command names: those of a store, or of the manager or store that a module exports.
 *
 * @throws WrongUse when there is no such store.
 */
export async function openMemories(
  { store: url, tenant, context }: StoreOptions,
  io: Pick<Io, 'folder' | 'say'>,
): Promise<OpenMemories> {
  const place = parseStoreUrl(url, io.folder);
  if (place.kind === 'module') {
    if (tenant !== undefined)
      throw new WrongUse('Memories of a module name their tenants by the context: use --context.');
    const found = await loadExport(place, io.folder);
    const { search, store } = found as Partial<MemoryManager>;
    const { commit, query, close } = found as Partial<MemoryStore>;
    const caller = context ? { context } : {};
    if (typeof search === 'function' && store) {
      return { manager: found as MemoryManager, knowsSessions: true, caller, close: async () => {} };
    }
    if (typeof commit !== 'function' || typeof query !== 'function') {
      throw new WrongUse(`'${url}' is neither a memory manager nor a memory store.`);
    }
    return { ...(await managed(found as MemoryStore)), caller, close: async () => close?.call(found) };
  }
  if (context) throw new WrongUse('--context is for memories of modules: use --tenant.');
  const prefix = tenant === undefined ? {} : { pathPrefix: () => tenant };
  if (place.kind === 'file') {
    checkFileStore('memory', { directory: place.directory, url, tenant }, io);
    const { FileMemoryStore } = await importMemory();
    const store = new FileMemoryStore(place.directory, prefix);
    return { ...(await managed(store)), caller: {}, close: () => store.close() };
  }
  const { Firestore } = await importOptional<typeof import('@google-cloud/firestore')>('@google-cloud/firestore');
  const { FirestoreMemoryStore } = await importPackage(() => import('genkitx-agents/google-cloud'));
  const db = new Firestore({ projectId: place.project });
  const store = new FirestoreMemoryStore({ db, collection: place.collection, ...prefix });
  const close = async (): Promise<void> => {
    await store.close();
    await db.terminate();
  };
  return { ...(await managed(store)), caller: {}, close };
}

/** A manager without a model: it can read, search and remove memories, but learns none. */
async function managed(store: MemoryStore): Promise<Pick<OpenMemories, 'manager' | 'knowsSessions'>> {
  const { memoryManager } = await importMemory();
  const { genkit } = await importPackage(() => import('genkitx-agents'));
  return { manager: memoryManager(genkit({}), { store, worker: false }), knowsSessions: false };
}
