import { FileSessionStore, type FileSessionStoreOptions } from '../../../../../stores/file/file-session-store.ts';

/** Selects the store of a task. */
export interface StoreSpec {
  readonly folder: string;
  readonly options?: FileSessionStoreOptions;
}

/** Flushing changes nothing between processes of one machine and makes the tests slow. */
export const FAST: FileSessionStoreOptions = { durability: 'fast' };

const open = new Map<string, FileSessionStore>();

/** This process's store of a folder, warm after its first use. */
export function storeOf({ folder, options }: StoreSpec): FileSessionStore {
  const store = open.get(folder) ?? new FileSessionStore(folder, { ...FAST, ...options });
  open.set(folder, store);
  return store;
}
