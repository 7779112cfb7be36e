export type { Generates } from '../src/memory/pipeline/pipeline.ts';
export { memoryManager, type MemoryManager, type ScopeOption } from '../src/memory/manager.ts';
export type { MemoryTask, TaskEvaluation, TaskScore, TaskScores } from '../src/memory/evaluate-tasks.ts';
export type { PrunedMemories } from '../src/memory/rights/prune.ts';
export { processMemoryJobs, type ProcessMemoryJobsOptions } from '../src/memory/pipeline/jobs/process-jobs.ts';
export { memoryScope, memoryScopeId, type MemoryScope } from '../src/memory/scopes.ts';
export type { BackfillOptions, BackfillResult } from '../src/memory/backfill.ts';
export type { ForgottenSource } from '../src/memory/rights/forget.ts';
export type * from '../src/memory/types.ts';
export type {
  AttachedMemory,
  AttachOptions,
  EndedSession,
  MemoryPlacement,
  MemoryToolName,
  MemoryTurnReport,
  PreloadOptions,
} from '../src/memory/attach/types.ts';
export { FileMemoryStore, type FileMemoryStoreOptions } from '../stores/file/memory/file-memory-store.ts';
export {
  InMemoryMemoryStore,
  type InMemoryMemoryStoreOptions,
} from '../stores/in-memory/memory/in-memory-memory-store.ts';
export type * from '../src/store/memory/contract.ts';
export type { SnapshotPathPrefix } from '../src/store/name-tenant.ts';
export type { Page, PageOptions } from '../src/store/contract.ts';
export type * from '../src/memory/search/types.ts';
export type { MemoryLanguage } from '../src/memory/search/lexical/languages.ts';
export type { Durability } from '../stores/file/disk/store-folder.ts';
export type { Encryption } from '../src/store/encryption/encryption.ts';
export {
  BaseMemoryStore,
  type ClaimRequest,
  type CommitRequest,
  type JobsRequest,
  type ListEntry,
  type ListRequest,
  type MemoryTenant,
  type QueryAnswer,
} from '../src/store/memory/base-memory-store.ts';
export type { CommitOperations, NoteOperation, PutOperation, QueryRequest } from '../src/store/memory/checks.ts';
export {
  assertMemoryJobHeld,
  assertMemoryRevision,
  changeMemoryJob,
  leaseMemoryJob,
  memoryJobDueAt,
} from '../src/store/memory/jobs.ts';
export { memoryScopeKey, memoryScopeOfKey } from '../src/store/memory/scope.ts';
export {
  memorySequenceOf,
  memoryVersionAt,
  nextMemoryVersion,
  queryMemoryVersions,
  type MemoryVersion,
} from '../src/store/memory/version.ts';
