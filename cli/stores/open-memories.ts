import type { MemoryManager, MemoryStore } from 'genkitx-agents/memory';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { openPlace, type Opened, type StoreOptions } from './open-place.ts';
import { importMemory, importPackage } from './packages.ts';

/** Open memories. For a store, the manager runs no jobs. */
export interface OpenMemories extends Opened<MemoryStore> {
  readonly manager: MemoryManager;
  /** Whether the manager is the application's, which knows the sessions that it learns from. */
  readonly knowsSessions: boolean;
}

/**
 * Opens the memories that a command names: those of a store, or of the manager or store that a module exports.
 *
 * @throws WrongUse when there is no such store.
 */
export async function openMemories(options: StoreOptions, io: Pick<Io, 'folder' | 'say'>): Promise<OpenMemories> {
  let manager: MemoryManager | undefined;
  const open = await openPlace<MemoryStore>(options, io, {
    holds: 'memories',
    ofExport(found) {
      const { search, store, commit, query } = found as Partial<MemoryManager & MemoryStore>;
      if (typeof search === 'function' && store) {
        manager = found as MemoryManager;
        return store;
      }
      if (typeof commit === 'function' && typeof query === 'function') return found as MemoryStore;
      throw new WrongUse(`'${options.store}' is neither a memory manager nor a memory store.`);
    },
    async ofDirectory(directory, pathPrefix) {
      const { FileMemoryStore } = await importMemory();
      return new FileMemoryStore(directory, { pathPrefix });
    },
    async ofCollection(place, pathPrefix) {
      const { FirestoreMemoryStore } = await importPackage(() => import('genkitx-agents/google-cloud'));
      return new FirestoreMemoryStore({ ...place, pathPrefix });
    },
  });
  // The application's manager may still work on its store.
  if (manager) return { ...open, manager, knowsSessions: true, close: async () => {} };
  const { memoryManager } = await importMemory();
  const { genkit } = await importPackage(() => import('genkitx-agents'));
  // Without a model it can read, search and remove memories, but learns none.
  return { manager: memoryManager(genkit({}), { store: open.store, worker: false }), knowsSessions: false, ...open };
}
