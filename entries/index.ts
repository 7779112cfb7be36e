/** All exports of `genkit/beta`, so that an application only changes this import. The exports below replace those of the same name. */
export * from 'genkit/beta';
export { agentRuntime, type AgentRuntimeOptions, type MountedInspectorOptions } from '../plugins/agent-runtime.ts';
export type { RuntimeDefaults } from '../src/agent/define/runtime-defaults.ts';
export { AgentsGenkit, genkit } from '../plugins/genkit.ts';
export { defineAgent, defineCustomAgent, definePromptAgent } from '../src/agent/define/define-agent.ts';
export type {
  Agent,
  AgentCallOptions,
  AgentConfig,
  AgentFn,
  AgentFnOptions,
  AgentStateOptions,
  BackgroundOptions,
  CustomAgentConfig,
  GenkitOrRegistry,
  OutputOf,
  PromptAgentConfig,
  OnConflict,
  SchemaOf,
  StateScopes,
  TurnOverrides,
  UserIdOf,
  WithStateSchema,
} from '../src/agent/types.ts';
export type { SigningKey } from '../src/agent/define/state-signature.ts';
export { abortRun } from '../src/agent/save/abort-snapshot.ts';
export { handOverRuns, type HandOver, type HandOverOptions } from '../src/agent/hand-over.ts';
export {
  recoverRuns,
  type RecoveredRun,
  type RecoverOptions,
  type Recovery,
} from '../src/agent/recover/recover-runs.ts';
export { AgentError, type AgentErrorOptions } from '../src/client/errors.ts';
export type { ReconnectOptions } from '../src/client/http/reconnect.ts';
export { remoteAgent, type RemoteAgentOptions } from '../src/client/http/remote-agent.ts';
export type { ErrorStatus } from '../src/error-status.ts';
export type {
  AgentAPI,
  AgentChat,
  AgentChunk,
  AgentFinishReason,
  AgentInit,
  AgentInput,
  AgentInterrupt,
  AgentOutput,
  AgentResponse,
  AgentSnapshot,
  AgentStreamChunk,
  AgentTurn,
  Artifact,
  CallOptions,
  ContextReport,
  DetachedTask,
  MessageData,
  ModelUsage,
  Part,
  PartialOutput,
  PollOptions,
  SessionState,
  ToolRequestPart,
  ToolResponsePart,
  TurnOptions,
} from '../src/client/types.ts';
export { AgentInitError, SessionConflictError, StateError } from '../src/errors.ts';
export { applyPatch, PatchError, type ApplyOptions } from '../src/json/patch/apply-checked.ts';
export { diff, type JsonPatch, type JsonPatchOperation } from '../src/json/patch/diff.ts';
export { JsonValueError, type Json } from '../src/json/value.ts';
export type { PlainState } from '../src/session/state/plain-state.ts';
export {
  ScopedState,
  type OpenScope,
  type ScopedStateOptions,
  type StateKeyOf,
  type StateShape,
} from '../src/session/state/scoped-state.ts';
export type { EventActions, SessionEvent, SessionEventInput } from '../src/session/log/session-event.ts';
export type { SessionOwner } from '../src/session/owner.ts';
export { SessionRunner } from '../src/session/session-runner.ts';
export type {
  RunTurn,
  RuntimeError,
  TurnContext,
  TurnHandler,
  TurnOutcome,
  TurnResult,
  SessionRunnerOptions,
} from '../src/session/turn.ts';
export {
  SessionService,
  type CreateSessionOptions,
  type OnStale,
  type SessionServiceOptions,
  type StoredSessionInfo,
} from '../src/session/log/session-service.ts';
export { currentSession, renderWith } from '../src/session/state/session-state.ts';
export { Session, type PlainKeys, type SessionEvents } from '../src/session/session.ts';
export type { StateLimits } from '../src/session/state/state-values.ts';
export type { SessionQuery, StoredSession } from '../src/session/log/stored-session.ts';
export { reserveSnapshotId } from '../src/snapshot/ids.ts';
export {
  copySessions,
  type CopySessionsOptions,
  type ListedSession,
  type SessionLister,
} from '../src/store/migrate/copy-sessions.ts';
export type { CopyResult } from '../src/store/migrate/copy-target.ts';
export { exportSessions, type ExportSessionsOptions } from '../src/store/migrate/export-sessions.ts';
export { importSessions, type ImportSessionsOptions } from '../src/store/migrate/import-sessions.ts';
export type {
  EndLine,
  ExportCounts,
  ExportedLine,
  MemoryLine,
  RecordLine,
  ScopeLine,
  SessionLine,
  SnapshotLine,
  UnreadableLine,
} from '../src/store/migrate/session-lines.ts';
export { migratingStore, type MigratingStoreOptions } from '../src/store/migrate/migrating-store.ts';
export type {
  CheckCounts,
  CheckOptions,
  CheckResult,
  CheckStore,
  DeleteResult,
  DeleteSessionsResult,
  ListSessionsOptions,
  Page,
  PageOptions,
  PrunePolicy,
  PruneResult,
  ReadRecordsOptions,
  RecordStore,
  SaveSnapshotOptions,
  ScopeChange,
  ScopeId,
  ScopeRecord,
  ScopeStore,
  SessionDetails,
  SessionRecord,
  SessionSnapshot,
  SessionSnapshotInput,
  SessionStore,
  SessionStoreOptions,
  SessionSummary,
  SnapshotLookup,
  SnapshotMetadata,
  SnapshotMutator,
  SnapshotStatus,
  SnapshotStore,
  StoreCapabilities,
  StoreFinding,
  Unreadable,
  UsageSum,
  WriteRecordOptions,
} from '../src/store/contract.ts';
export type { SnapshotPathPrefix } from '../src/store/name-tenant.ts';
export { FileSessionStore, type FileSessionStoreOptions } from '../stores/file/file-session-store.ts';
export type { Durability } from '../stores/file/disk/store-folder.ts';
export { listGenkitDirectory, type ListGenkitDirectoryOptions } from '../stores/genkit/list-directory.ts';
export { InMemorySessionStore, type InMemorySessionStoreOptions } from '../stores/in-memory/in-memory-session-store.ts';
