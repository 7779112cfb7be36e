export {
  InMemoryMemoryStore,
  type InMemoryMemoryStoreOptions,
} from '../stores/in-memory/memory/in-memory-memory-store.ts';
export type * from '../src/store/memory/contract.ts';
export type { SnapshotPathPrefix } from '../src/store/name-tenant.ts';
export type { Page } from '../src/store/contract.ts';
export { MemorySearch } from '../src/memory/search/memory-search.ts';
export type * from '../src/memory/search/types.ts';
export type { ScoreParts, SearchWeights } from '../src/memory/search/score.ts';
export type { SearchClock } from '../src/memory/search/deadline.ts';
export type { MemoryLanguage } from '../src/memory/search/languages.ts';
