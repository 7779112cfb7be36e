export {
  InMemoryMemoryStore,
  type InMemoryMemoryStoreOptions,
} from '../stores/in-memory/memory/in-memory-memory-store.ts';
export type * from '../src/store/memory/contract.ts';
export type { SnapshotPathPrefix } from '../src/store/name-tenant.ts';
export type { Page } from '../src/store/contract.ts';
