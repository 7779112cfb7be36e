/**
 * The types of the requests of the inspector's page and of its server's answers. This file has no code, so it can be imported anywhere.
 *
 * Every address is relative to the inspector's path: a page requests `api/sessions`, never `/api/sessions`. Parameters of a read are in the
 * query, as text (`undefined` ones are left out; a list of ids is repeated); those of a write are the JSON body of a `POST`. An answer is
 * JSON: as in {@link InspectorReads} and {@link InspectorWrites}, or an {@link InspectorFailure} with the HTTP status of its error.
 * `api/live` answers server-sent events.
 */
import type { MessageData } from 'genkit';
import type { Artifact } from 'genkit/beta';
import type { MemorySearchResult } from '../memory/search/types.ts';
import type { IngestResult, QuarantinedText } from '../memory/types.ts';
import type { ContextReport } from '../snapshot/context-report.ts';
import type { RunState } from '../snapshot/lease.ts';
import type { SnapshotMetadata, SnapshotStatus } from '../snapshot/snapshot.ts';
import type {
  DeleteResult,
  Page,
  PageOptions,
  SessionSummary,
  StoreCapabilities,
  UsageSum,
} from '../store/contract.ts';
import type { Memory, MemoryJob, MemoryScopeId, MemorySource } from '../store/memory/contract.ts';

export type {
  Artifact,
  ContextReport,
  Memory,
  MemoryJob,
  MemoryScopeId,
  MemorySearchResult,
  MemorySource,
  MessageData,
  Page,
  QuarantinedText,
  RunState,
  SessionSummary,
  SnapshotStatus,
  UsageSum,
};

/** The reads: `GET api/<name>?<parameters>`. */
export interface InspectorReads {
  /** The inspector's facts and the first page of sessions: all that the first view needs, in one request. */
  start: { asks: SessionsQuery; answers: InspectorStart };
  /** Sessions, the one written last first. */
  sessions: { asks: SessionsQuery; answers: SessionsPage };
  /** The snapshots of a session without their states, oldest first. */
  tree: { asks: TreeQuery; answers: TreePage };
  /** One snapshot with all of its data. */
  snapshot: { asks: SnapshotQuery; answers: SnapshotView };
  /** The model's input in the turn of a snapshot. */
  seen: { asks: SnapshotQuery; answers: SeenView };
  /** The differences between two snapshots of any sessions. */
  diff: { asks: TenantQuery & { from: string; to: string }; answers: SnapshotDiff };
  /** The turns of a branch that changed a value. */
  changes: { asks: ChangesQuery; answers: ChangesPage };
  /** Background runs. */
  runs: { asks: Omit<PageQuery, 'limit'>; answers: RunsPage };
  /** Scopes that have memories or jobs. */
  'memory/scopes': { asks: PageQuery; answers: Page<MemoryScopeId> };
  /** Memories of a scope, the one updated last first. */
  'memory/list': { asks: MemoryListQuery; answers: Page<Memory> };
  /** The memories that match a text best, with the parts of their scores. */
  'memory/search': { asks: MemorySearchQuery; answers: MemorySearchResult };
  /** A memory and all its revisions. */
  'memory/show': { asks: MemoryIdQuery; answers: MemoryView };
  /** The messages from which a memory was learned, for one of its sources. */
  'memory/source': { asks: MemoryIdQuery & { source: number }; answers: SourceView };
  /** Texts of the quarantine, which wait for a decision. */
  'memory/quarantine': { asks: ScopeQuery; answers: { items: QuarantinedText[] } };
  /** Jobs of the tenant, or of a scope, oldest first; `state: 'dead'` are the dead letters. */
  'memory/jobs': { asks: PageQuery & Partial<Pick<MemoryJob, 'scope' | 'state'>>; answers: Page<MemoryJob> };
}

/** The writes: `POST api/<name>` with a JSON body. All are refused with `readOnly`; those that remove something need `confirm`. */
export interface InspectorWrites {
  /** Aborts the run of a snapshot. Returns the status before. */
  abort: { asks: TenantQuery & { snapshotId: string }; answers: { status?: SnapshotStatus } };
  /** Runs an agent of the inspector from a snapshot on. The answer comes when the turn has ended. */
  fork: { asks: ForkRequest; answers: ForkResult };
  /** Removes a session. `confirm` repeats its id. */
  'delete-session': { asks: TenantQuery & { sessionId: string; confirm: string }; answers: DeleteResult };
  /** Removes a memory with its revisions. `confirm` repeats its id. */
  'memory/remove': { asks: MemoryIdQuery & { confirm: string }; answers: Record<string, never> };
  /** Approves a text of the quarantine. While the scope's consent is off (`refused`), the text stays there. */
  'memory/approve': { asks: MemoryIdQuery; answers: Pick<IngestResult, 'status'> };
  /** Discards a text of the quarantine. `confirm` repeats its id. */
  'memory/discard': { asks: MemoryIdQuery & { confirm: string }; answers: Record<string, never> };
  /** Tries a dead job again. */
  'memory/replay': { asks: TenantQuery & { jobId: string }; answers: Record<string, never> };
  /** Removes a dead job; its messages are not learned later. `confirm` repeats its id. */
  'memory/discard-job': { asks: TenantQuery & { jobId: string; confirm: string }; answers: Record<string, never> };
}

/** The answer to a request that failed. */
export interface InspectorFailure {
  /** The error. */
  error: InspectorError;
}

/** An error for the developer in front of the page. */
export interface InspectorError {
  /** The name of its status, for example `NOT_FOUND`. */
  status: string;
  /** The message for developers. Clients of agents may get a shorter one. */
  message: string;
  /** The details of a stored error, for example the `errorId` under which the log has more. */
  details?: unknown;
}

/** A parameter of every request. */
export interface TenantQuery {
  /** The tenant, if {@link InspectorInfo.hasTenants}. Default: the tenant for which the inspector was started. */
  tenant?: string;
}

/** The part of a list to return. */
export type PageQuery = TenantQuery & Pick<PageOptions, 'limit' | 'cursor'>;

/** The answer of `start`. */
export interface InspectorStart extends SessionsPage {
  /** The inspector's facts. */
  info: InspectorInfo;
  /** Why the sessions can't be listed, for example because the store needs a tenant. */
  error?: InspectorError;
}

/** The inspector's facts: what it can show and do. */
export interface InspectorInfo {
  /** The version of the package. */
  version: string;
  /** Describes the store for people, for example `file:.data/sessions`. */
  store: string;
  /** The store's capabilities. Without `list`, snapshots are shown by their ids only. */
  capabilities: StoreCapabilities;
  /** Names of the agents for `fork`. */
  agents: string[];
  /** Describes the store of the memories for people. Omitted: there are no memories to show. */
  memoryStore?: string;
  /** Whether all writes are refused. */
  readOnly: boolean;
  /** Whether requests may choose a `tenant`. */
  hasTenants: boolean;
  /** Milliseconds between two reads of the store by `api/live`. */
  pollIntervalMs: number;
}

/** The sessions to list: those that meet all conditions. */
export interface SessionsQuery extends PageQuery {
  /** Words that the session's id, title, owner or agent contain, in any case. */
  search?: string;
  /** Status of the latest leaf, as in {@link TreeNode}. */
  status?: SnapshotStatus;
  /** The session's agent. */
  agent?: string;
  /** Not written before this time; ISO 8601. */
  since?: string;
  /** Not written after this time; ISO 8601. */
  until?: string;
  /** Minimum number of snapshots. */
  minSnapshots?: number;
  /** Minimum number of tokens. */
  minTokens?: number;
}

/** A page of sessions. */
export interface SessionsPage extends Page<SessionRow> {
  /**
   * How many sessions were read for this page. With conditions a page may have more items than `limit`, or fewer, or none, and still a
   * `nextCursor`: a request reads at most 5,000 sessions.
   */
  looked: number;
}

/** One session in the list. */
export interface SessionRow extends SessionSummary {
  /** Input and output tokens of all its turns and summaries together. Omitted: unknown. */
  tokens?: number;
}

/** The part of a tree to return. */
export interface TreeQuery extends PageQuery {
  /** The session. */
  sessionId: string;
  /** Maximum number of nodes, 1 to 10,000; each 1,000 take one request of the store. Default: 10,000. */
  limit?: number;
}

/** Snapshots of a session. */
export interface TreePage {
  /** In the order of their first saves. The latest leaf is the last node without children. */
  nodes: TreeNode[];
  /** Pass it as `cursor` to get the next nodes. Omitted: there are none. */
  nextCursor?: string;
}

/** A snapshot without its state. If its parent was removed, it is a root. */
export interface TreeNode extends Pick<
  SnapshotMetadata,
  'snapshotId' | 'sessionId' | 'parentId' | 'createdAt' | 'updatedAt' | 'finishReason'
> {
  /** Missing in foreign data only. A `pending` snapshot whose lease has expired is `expired` here. */
  status?: SnapshotStatus;
  /** Why it failed, in one line. */
  error?: string;
  /** The model in the context report. Omitted: unknown. */
  model?: string;
  /** Input and output tokens of the turn. */
  tokens?: number;
  /** Number of the session's messages after this turn, and of those that the turn added. Omitted: unknown. */
  messages?: { count: number; added: number };
  /** Whether it has a context report, so that `seen` can show the model's input. */
  hasReport?: boolean;
  /** The background run that it belongs to. */
  run?: RunFacts;
}

/** The facts of a background run in a snapshot. */
export interface RunFacts {
  /** The run: the id of its last turn's snapshot. */
  id: string;
  /** The agent. Missing in runs of Genkit's own agents, like the next two. */
  agent?: string;
  /** The worker that holds, or held, the lease. */
  owner?: string;
  /** 1, and one more after each takeover. */
  generation?: number;
  /** The time of the worker's last heartbeat; ISO 8601. Missing in a run that was handed over, like `owner`. */
  heartbeatAt?: string;
  /** The lease ends this long after `heartbeatAt`, in ms. */
  leaseMs?: number;
  /** Its state. Omitted: it has ended. */
  state?: RunState;
}

/** Names a snapshot: by its id, or as the latest leaf of a session. */
export interface SnapshotQuery extends TenantQuery {
  /** This snapshot. */
  snapshotId?: string;
  /** The latest leaf of this session. */
  sessionId?: string;
}

/** A snapshot with all of its data. */
export interface SnapshotView {
  /** Its node in the tree. */
  node: TreeNode;
  /** The conversation until the end of its turn, from `messagesFrom` on. */
  messages: MessageData[];
  /** The position of the first of `messages`: 0, except in events of `api/live`, which leave out the messages that the page has. */
  messagesFrom: number;
  /** The agent that ran the turn. Known only for a session with an owner. */
  agent?: string;
  /** The custom state. */
  custom?: unknown;
  /** Its artifacts. */
  artifacts: Artifact[];
  /** Why it failed. */
  error?: InspectorError;
  /** Counts of the model's input. */
  contextReport?: ContextReport;
  /** The usage of the turn's model calls by name, for example `inputTokens`. */
  usage?: UsageSum;
  /** All other members of the snapshot, as stored. The session's title, owner and agent are in {@link SessionRow}. */
  more: { [member: string]: unknown };
  /** Size of the state as JSON, in bytes. */
  stateBytes: number;
}

/** The model's input in a turn. */
export interface SeenView {
  /** The counts. Omitted: the agent had no context window, and the model got the whole conversation. */
  report?: ContextReport;
  /** The summary in the input. Omitted: there was none, or, if `report.summary` names one, it was removed. */
  summary?: SeenSummary;
  /** The session's messages in ranges, in order and without a gap; positions are those of {@link SnapshotView.messages}. */
  ranges: SeenRange[];
}

/** A summary in place of the first messages. */
export interface SeenSummary {
  /** Its text. */
  text: string;
  /** It covers the messages before this position. */
  to: number;
  /** The model that wrote it. */
  model: string;
  /** Estimated tokens. */
  tokens: number;
  /** ISO 8601. */
  createdAt: string;
}

/** A range of messages, and their use in the model's input. */
export interface SeenRange {
  /** Position of the first one. */
  from: number;
  /** Position after the last one. */
  to: number;
  /**
   * `sent`: unchanged; `changed`: with other content, for example a stub for a tool's output; `covered`: replaced by the summary;
   * `dropped`: left out; `turn`: messages of the turn itself; `unknown`: the report was too long.
   */
  as: 'sent' | 'changed' | 'covered' | 'dropped' | 'turn' | 'unknown';
}

/** The differences between two snapshots, with their nodes. */
export interface SnapshotDiff extends SnapshotChanges {
  /** The first snapshot. */
  from: TreeNode;
  /** The second snapshot. */
  to: TreeNode;
}

/** The differences between two snapshots. */
export interface SnapshotChanges {
  /** The messages. */
  messages: {
    /** How many messages are the same, from the first on. */
    same: number;
    /** The further messages of `from`. */
    removed: MessageData[];
    /** The further messages of `to`. */
    added: MessageData[];
  };
  /** Values of the custom state, by path. */
  custom: ValueChange[];
  /** Artifacts; their paths begin with the name, for example `/report.md`. Unnamed ones have the name `artifact <position>`. */
  artifacts: ValueChange[];
}

/** A value that changed. */
export interface ValueChange {
  /** RFC 6901 pointer, for example `/orderId`. */
  path: string;
  /** The value before. Omitted: none. */
  before?: unknown;
  /** The value after. Omitted: none. */
  after?: unknown;
}

/** The value whose changes to find, and where. */
export interface ChangesQuery extends TenantQuery {
  /** Searches this snapshot and those before it. */
  snapshotId: string;
  /** The value: RFC 6901 pointer into the custom state, for example `/orderId`. */
  path: string;
  /** Maximum number of snapshots to read, 1 to 500; each takes one request of the store. Default: 100. */
  limit?: number;
}

/** Changes of a value, the last one first. */
export interface ChangesPage {
  /** The turns that changed it. */
  items: (ValueChange & { node: TreeNode })[];
  /** Pass it as `snapshotId` to search further back. Omitted: the beginning of the branch was reached. */
  nextSnapshotId?: string;
}

/**
 * Background runs, those of the session written last first. A request lists 1,000 sessions, and reads one or more snapshots of each
 * session that may have a run.
 */
export interface RunsPage extends Page<RunLine> {
  /** The server's time, for the rest of the leases; ISO 8601. */
  now: string;
}

/** A background run, with its snapshot. */
export interface RunLine
  extends Omit<RunFacts, 'state'>, Required<Pick<SnapshotMetadata, 'sessionId' | 'snapshotId' | 'createdAt'>> {
  /** Its state. `given-up`: it failed, for example because its workers died too often. */
  state: RunState | 'given-up';
  /** Why it failed. */
  error?: string;
}

/** A new turn from an earlier snapshot. */
export interface ForkRequest extends TenantQuery {
  /** One of {@link InspectorInfo.agents}. */
  agent: string;
  /** The snapshot to continue from. To run a turn again with another text, the parent of its snapshot. Default: a new session. */
  snapshotId?: string;
  /** The user's text. Default: none, which runs an aborted turn again; every other turn needs one. */
  text?: string;
  /**
   * Answers the tools that wait in the snapshot: `approve` runs them, `deny` gives the model `text`, or a fixed sentence, in place of their
   * outputs. Default: no answer.
   */
  answer?: 'approve' | 'deny';
  /** The model. The agent must allow it by its `turnOverrides`. Default: the agent's. */
  model?: string;
}

/** How a fork ended. */
export interface ForkResult {
  /** The new snapshot, on a branch. Omitted: no snapshot was saved from which a conversation can continue. */
  snapshotId?: string;
  /** How the turn ended, for example `stop`. */
  finishReason?: string;
  /** Why it failed. */
  error?: InspectorError;
}

/** Names a scope. */
export interface ScopeQuery extends TenantQuery {
  /** The scope, as JSON in the query of a read. */
  scope: MemoryScopeId;
}

/** The memories of a scope to list. */
export interface MemoryListQuery extends ScopeQuery, PageQuery {
  /** Lists the scope as it was at this time; ISO 8601. Default: now. */
  asOf?: string;
  /** Also lists memories that are no longer valid. Default: false. */
  all?: boolean;
  /** Only of this kind. */
  kind?: Memory['kind'];
  /** Only with this topic. */
  topic?: string;
}

/** A search in a scope. */
export interface MemorySearchQuery extends ScopeQuery {
  /** A question, or words. */
  query: string;
  /** Maximum number of memories, 1 to 50. Default: 10. */
  k?: number;
  /** Searches the scope as it was at this time; ISO 8601. Default: now. */
  asOf?: string;
}

/** Names a memory, or a text of the quarantine. */
export interface MemoryIdQuery extends ScopeQuery {
  /** Its id. */
  id: string;
}

/** A memory and all its revisions. */
export interface MemoryView {
  /** Its current revision. */
  memory: Memory;
  /** Oldest first; the last one is `memory`. */
  revisions: Memory[];
}

/** A source of a memory, with its messages. */
export interface SourceView {
  /** The source as the memory names it. */
  source: MemorySource;
  /** The messages of the source. Omitted: they were removed, their branch is unknown, or the source is not a session. */
  messages?: MessageData[];
  /** Why there are no `messages`. */
  reason?: string;
  /** The snapshot with the messages, which shows them in their conversation. */
  snapshotId?: string;
  /** The session with the messages, or, without `messages`, the one that may have them. */
  sessionId?: string;
}

/**
 * The events to send. `GET api/live` with these parameters answers with server-sent events; see {@link LiveEvents} for their names and JSON
 * data. It polls the store: the session `sessionId`, or without it the 100 sessions written last, for a list with these conditions. Each
 * poll takes one request of the store.
 */
export interface LiveQuery extends Omit<SessionsQuery, 'limit' | 'cursor'> {
  /** Polls this session. Default: the list. */
  sessionId?: string;
  /** The latest leaf that the page knows. Default: none, so the first event has the current leaf. */
  leafId?: string;
  /** Also sends each new snapshot, so that the page need not request it. Default: false. */
  follow?: boolean;
  /** Up to 20 snapshots that the page shows as running; each takes one more request per poll until it has ended. Default: none. */
  pending?: string[];
}

/** The events of `api/live`, by name. */
export interface LiveEvents {
  /** The ids of all sessions that were written, and the lines of those that meet the conditions. The others leave the list. */
  sessions: { items: SessionRow[]; written: string[] };
  /** New or changed snapshots, parents first. They replace the nodes of the same ids. */
  nodes: { nodes: TreeNode[] };
  /** With `follow`: the latest leaf. `messagesFrom` is the number of messages in common with the leaf of the poll before. */
  snapshot: SnapshotView;
  /** The session was removed. */
  gone: Record<string, never>;
  /** A poll failed; the next one follows. */
  failure: InspectorFailure;
}
