/**
 * What the inspector's page asks of its server, as types. This file has no code and runs anywhere.
 *
 * Every address is below the inspector's own path, so a page asks for `api/sessions`, never for `/api/sessions`. Parameters of a read are in the
 * query, as text (`undefined` ones are left out; a list of ids is repeated); those of a write are the JSON body of a `POST`. An answer is JSON:
 * what {@link InspectorReads} and {@link InspectorWrites} say, or an {@link InspectorFailure} with the HTTP status of its error.
 * `api/live` answers server-sent events.
 */
import type { MessageData } from 'genkit';
import type { Artifact } from 'genkit/beta';
import type { MemorySearchResult } from '../memory/search/types.ts';
import type { QuarantinedText } from '../memory/types.ts';
import type { ContextReport } from '../snapshot/context-report.ts';
import type { SnapshotStatus } from '../snapshot/snapshot.ts';
import type { DeleteResult, Page, SessionSummary, StoreCapabilities, UsageSum } from '../store/contract.ts';
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
  SessionSummary,
  SnapshotStatus,
  UsageSum,
};

/** The reads: `GET api/<name>?<parameters>`. */
export interface InspectorReads {
  /** What there is to see, with the first page of sessions: all that the first view needs, in one request. */
  start: { asks: SessionsQuery; answers: InspectorStart };
  /** Sessions, the one written last first. */
  sessions: { asks: SessionsQuery; answers: SessionsPage };
  /** The snapshots of a session without their states, oldest first. */
  tree: { asks: TreeQuery; answers: TreePage };
  /** One snapshot with all that it holds. */
  snapshot: { asks: SnapshotQuery; answers: SnapshotView };
  /** What the model was sent in the turn of a snapshot. */
  seen: { asks: SnapshotQuery; answers: SeenView };
  /** What changed between two snapshots of any sessions. */
  diff: { asks: TenantQuery & { from: string; to: string }; answers: SnapshotDiff };
  /** Which turns of a branch changed a value. */
  changes: { asks: ChangesQuery; answers: ChangesPage };
  /** Background runs. */
  runs: { asks: RunsQuery; answers: RunsPage };
  /** Scopes that have memories or jobs. */
  'memory/scopes': { asks: PageQuery; answers: Page<MemoryScopeId> };
  /** Memories of a scope, the one updated last first. */
  'memory/list': { asks: MemoryListQuery; answers: Page<Memory> };
  /** The memories that fit a text best, with the parts of their scores. */
  'memory/search': { asks: MemorySearchQuery; answers: MemorySearchResult };
  /** A memory, and all that it was. */
  'memory/show': { asks: MemoryQuery; answers: MemoryView };
  /** The messages that a source of a memory was read from. */
  'memory/source': { asks: MemoryQuery & { source: number }; answers: SourceView };
  /** Texts that wait for a decision. Needs a memory manager. */
  'memory/quarantine': { asks: ScopeQuery; answers: { items: QuarantinedText[] } };
  /** Jobs of the tenant, oldest first; `state: 'dead'` are the dead letters. */
  'memory/jobs': { asks: MemoryJobsQuery; answers: Page<MemoryJob> };
}

/** The writes: `POST api/<name>` with a JSON body. All are refused with `readOnly`; those that remove something need `confirm`. */
export interface InspectorWrites {
  /** Stops a running snapshot. Answers the status that it had before. */
  abort: { asks: TenantQuery & { snapshotId: string }; answers: { status?: SnapshotStatus } };
  /** Continues from a snapshot, by an agent of the inspector. Answers when the turn has ended. */
  fork: { asks: ForkRequest; answers: ForkResult };
  /** Removes a session. `confirm` repeats its id. */
  'delete-session': { asks: TenantQuery & { sessionId: string; confirm: string }; answers: DeleteResult };
  /** Removes a memory with its revisions. `confirm` repeats its id. */
  'memory/remove': { asks: MemoryWrite & { confirm: string }; answers: Record<string, never> };
  /** Lets a text of the quarantine pass. Needs a memory manager. */
  'memory/approve': { asks: MemoryWrite; answers: Record<string, never> };
  /** Removes a text of the quarantine. `confirm` repeats its id. Needs a memory manager. */
  'memory/discard': { asks: MemoryWrite & { confirm: string }; answers: Record<string, never> };
  /** Tries a dead job again. */
  'memory/replay': { asks: TenantQuery & { jobId: string }; answers: Record<string, never> };
}

/** Every answer that is no success. */
export interface InspectorFailure {
  /** What went wrong. */
  error: InspectorError;
}

/** An error for the developer in front of the page. */
export interface InspectorError {
  /** The name of its status, say `NOT_FOUND`. */
  status: string;
  /** What it says, to developers. Clients of agents may read less. */
  message: string;
  /** Of a stored error: what it says besides, say the `errorId` under which the log has more. */
  details?: unknown;
}

/** What every request may have. */
export interface TenantQuery {
  /** The tenant, where {@link InspectorInfo.hasTenants}. Default: the one that the inspector was started for. */
  tenant?: string;
}

/** Which part of a list. */
export interface PageQuery extends TenantQuery {
  /** At most so many items, 1 to 1,000. Default: 100. */
  limit?: number;
  /** `nextCursor` of the page before. */
  cursor?: string;
}

/** What `start` answers. */
export interface InspectorStart extends SessionsPage {
  /** What there is to see. */
  info: InspectorInfo;
}

/** What there is to see. */
export interface InspectorInfo {
  /** The version of the package. */
  version: string;
  /** Describes the store for people, say `file:.data/sessions`. */
  store: string;
  /** What the store can do; a store without `list` shows snapshots by their ids only. */
  capabilities: StoreCapabilities;
  /** Agents that `fork` takes, by name. */
  agents: string[];
  /** Whether there are memories to see, and a manager, which has a quarantine. */
  memory: 'manager' | 'store' | 'none';
  /** All writes are refused. */
  readOnly: boolean;
  /** `tenant` may be chosen. */
  hasTenants: boolean;
  /** Milliseconds between two looks of `api/live` at the store. */
  pollIntervalMs: number;
}

/** Which sessions. The conditions add up. */
export interface SessionsQuery extends PageQuery {
  /** Words that the session's id, title, owner or agent contain, in any case. */
  search?: string;
  /** Of the latest leaf. */
  status?: SnapshotStatus;
  /** The agent that answers in it. */
  agent?: string;
  /** Not written before this time; ISO 8601. */
  since?: string;
  /** Not written after this time; ISO 8601. */
  until?: string;
  /** At least so many snapshots. */
  minSnapshots?: number;
  /** At least so many tokens. */
  minTokens?: number;
}

/** A page of sessions. */
export interface SessionsPage extends Page<SessionLine> {
  /**
   * Sessions that were looked at for this page. With conditions a page may have more items than `limit`, or fewer, or none, and still a
   * `nextCursor`: a request looks at 5,000 sessions at most.
   */
  looked: number;
}

/** One session in the list. */
export interface SessionLine extends SessionSummary {
  /** Input and output tokens of all its turns and summaries together. Default: not known. */
  tokens?: number;
}

/** Which part of a tree. */
export interface TreeQuery extends PageQuery {
  /** The session. */
  sessionId: string;
  /** At most so many nodes, 1 to 10,000; 1,000 cost one request of the store. Default: 10,000. */
  limit?: number;
}

/** Snapshots of a session. */
export interface TreePage {
  /** In the order in which they were first saved. The latest leaf is the last one that no other names as parent. */
  nodes: TreeNode[];
  /** Pass it as `cursor` to get the next ones. Default: there are none. */
  nextCursor?: string;
}

/** A snapshot without its state. */
export interface TreeNode {
  /** Names it. */
  snapshotId: string;
  /** The session. */
  sessionId?: string;
  /** The snapshot that it continues. It may be gone: such a node is a root. */
  parentId?: string;
  /** ISO 8601. */
  createdAt: string;
  /** ISO 8601. */
  updatedAt?: string;
  /** Missing in foreign data only. A `pending` one whose lease has run out is `expired` here. */
  status?: SnapshotStatus;
  /** How the turn ended, say `interrupted`: it waits for an answer. */
  finishReason?: string;
  /** Why it failed, in one line. */
  error?: string;
  /** The model, as far as the context report says. */
  model?: string;
  /** Input and output tokens of the turn. */
  tokens?: number;
  /** Messages of the session at the end of this turn, and those that the turn added. Default: the snapshot does not say. */
  messages?: { count: number; added: number };
  /** It has a context report: `seen` says what the model was sent. */
  hasReport?: boolean;
  /** The background run that it belongs to. */
  run?: RunFacts;
}

/** What a snapshot says of its background run. */
export interface RunFacts {
  /** The run: the id of its last turn's snapshot. */
  id: string;
  /** The agent. Missing in runs of Genkit's own agents, like the next two. */
  agent?: string;
  /** The worker that holds, or held, the lease. */
  owner?: string;
  /** 1, one more with each takeover. */
  generation?: number;
  /** The last sign of life; ISO 8601. */
  heartbeatAt?: string;
  /** The lease ends so long after `heartbeatAt`, in ms. */
  leaseMs?: number;
}

/** Names a snapshot: by its id, or as the latest leaf of a session. */
export interface SnapshotQuery extends TenantQuery {
  /** This snapshot. */
  snapshotId?: string;
  /** The latest leaf of this session. */
  sessionId?: string;
}

/** A snapshot with all that it holds. */
export interface SnapshotView {
  /** What the tree shows of it. */
  node: TreeNode;
  /** The conversation until the end of its turn, from `messagesFrom` on. */
  messages: MessageData[];
  /** The position of the first of `messages`: 0, except in events of `api/live`, which repeat nothing. */
  messagesFrom: number;
  /** The custom state. */
  custom?: unknown;
  /** Its artifacts. */
  artifacts: Artifact[];
  /** Why it failed. */
  error?: InspectorError;
  /** What the model was sent, in counts. */
  contextReport?: ContextReport;
  /** The usage of the turn's model calls by name, say `inputTokens`. */
  usage?: UsageSum;
  /** The session's title, owner and agent are in {@link SessionLine}; this is all else that the snapshot says, as it is stored. */
  more: { [member: string]: unknown };
  /** The state as JSON, in bytes. */
  stateBytes: number;
}

/** What the model was sent in a turn. */
export interface SeenView {
  /** The counts. Default: the agent had no context window, and the model was sent the whole conversation. */
  report?: ContextReport;
  /** The summary that was sent. Default: none was, or it is not there any more: then `report.summary` names it. */
  summary?: SeenSummary;
  /**
   * The messages of the session, in order and without a gap, by what became of them; positions are those of {@link SnapshotView.messages}.
   */
  ranges: SeenRange[];
}

/** A summary in place of the first messages. */
export interface SeenSummary {
  /** Its words. */
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

/** Messages and what became of them. */
export interface SeenRange {
  /** Position of the first one. */
  from: number;
  /** Position after the last one. */
  to: number;
  /**
   * `sent`: as they are; `changed`: with other content, say a tool's output replaced by a stub; `covered`: by the summary; `dropped`: not at
   * all; `turn`: messages of the turn itself; `unknown`: the report was too long to say.
   */
  as: 'sent' | 'changed' | 'covered' | 'dropped' | 'turn' | 'unknown';
}

/** What changed between two snapshots. */
export interface SnapshotDiff {
  /** The one. */
  from: TreeNode;
  /** The other. */
  to: TreeNode;
  /** The messages. */
  messages: {
    /** So many first messages are the same. */
    same: number;
    /** What comes after them in `from`. */
    removed: MessageData[];
    /** What comes after them in `to`. */
    added: MessageData[];
  };
  /** Values of the custom state, by path. */
  custom: ValueChange[];
  /** Artifacts by name. Unnamed ones have the name `artifact <position>`. */
  artifacts: ValueChange[];
}

/** A value that changed. */
export interface ValueChange {
  /** RFC 6901 pointer, say `/orderId`. */
  path: string;
  /** What was there. Omitted: nothing. */
  before?: unknown;
  /** What is there. Omitted: nothing. */
  after?: unknown;
}

/** Where to look for changes of a value. */
export interface ChangesQuery extends TenantQuery {
  /** Look at this snapshot and those before it. */
  snapshotId: string;
  /** The value: RFC 6901 pointer into the custom state, say `/orderId`. */
  path: string;
  /** Snapshots to read, 1 to 500: each costs one request of the store. Default: 100. */
  limit?: number;
}

/** Changes of a value, the last one first. */
export interface ChangesPage {
  /** The turns that changed it. */
  items: (ValueChange & { node: TreeNode })[];
  /** Pass it as `snapshotId` to look further back. Default: the beginning of the branch was reached. */
  nextSnapshotId?: string;
}

/** Which runs. */
export interface RunsQuery extends TenantQuery {
  /** `nextCursor` of the page before. */
  cursor?: string;
}

/**
 * Background runs, of the sessions that were written last first. A request looks at 1,000 sessions, and reads one document for each that may
 * have a run.
 */
export interface RunsPage {
  /** The runs. */
  items: RunLine[];
  /** Pass it as `cursor` to look at more sessions. Default: there are none. */
  nextCursor?: string;
  /** The server's clock, for leases that tick; ISO 8601. */
  now: string;
}

/**
 * `running`: its worker lives; `waiting`: it has not begun; `expired`: its worker is dead, and another takes over where recovery is on;
 * `given-up`: it failed, say because its worker died too often.
 */
export type RunState = 'running' | 'waiting' | 'expired' | 'given-up';

/** A background run. */
export interface RunLine extends RunFacts {
  /** Its state. */
  state: RunState;
  /** The session. */
  sessionId: string;
  /** The snapshot to look at, or to abort. */
  snapshotId: string;
  /** When it was begun; ISO 8601. */
  createdAt: string;
  /** Why it is given up. */
  error?: string;
}

/** A turn to try again in another way. */
export interface ForkRequest extends TenantQuery {
  /** One of {@link InspectorInfo.agents}. */
  agent: string;
  /** The snapshot to continue from: to say something else in a turn, the parent of its snapshot. Default: a new session begins. */
  snapshotId?: string;
  /** What the user says. Default: nothing, which continues an aborted turn. */
  text?: string;
  /**
   * Answers the tools that wait in the snapshot: `approve` runs them, `deny` gives the model `text`, or a sentence, in place of their outputs.
   * Default: neither.
   */
  answer?: 'approve' | 'deny';
  /** The model. The agent must allow it by its `turnOverrides`. Default: the agent's. */
  model?: string;
}

/** How a fork ended. */
export interface ForkResult {
  /** The new snapshot: a branch. Omitted: nothing was saved that a conversation can go on from. */
  snapshotId?: string;
  /** How the turn ended, say `stop`. */
  finishReason?: string;
  /** Why it failed. */
  error?: InspectorError;
}

/** Names a scope. */
export interface ScopeQuery extends TenantQuery {
  /** The scope, as JSON in the query of a read. */
  scope: MemoryScopeId;
}

/** Which memories of a scope. */
export interface MemoryListQuery extends ScopeQuery, PageQuery {
  /** As the scope was then; ISO 8601. Default: as it is now. */
  asOf?: string;
  /** Also those that do not hold any more. Default: false. */
  all?: boolean;
  /** Only of this kind. */
  kind?: Memory['kind'];
  /** Only with this topic. */
  topic?: string;
}

/** What to find in a scope. */
export interface MemorySearchQuery extends ScopeQuery {
  /** A question, or words. */
  query: string;
  /** At most so many, 1 to 50. Default: 10. */
  k?: number;
  /** As the scope was then; ISO 8601. Default: as it is now. */
  asOf?: string;
}

/** Names a memory. */
export interface MemoryQuery extends ScopeQuery {
  /** The memory. */
  id: string;
}

/** Names a memory, or a text of the quarantine, to change. */
export interface MemoryWrite extends TenantQuery {
  /** Whose it is. */
  scope: MemoryScopeId;
  /** Names it. */
  id: string;
}

/** Which jobs. */
export interface MemoryJobsQuery extends PageQuery {
  /** Only those of a scope. Default: of all. */
  scope?: MemoryScopeId;
  /** Only those in this state. Default: in any. */
  state?: MemoryJob['state'];
}

/** A memory, and all that it was. */
export interface MemoryView {
  /** As it is. */
  memory: Memory;
  /** Oldest first; the last one is `memory`. */
  revisions: Memory[];
}

/** Where a memory comes from. */
export interface SourceView {
  /** What the memory says of it. */
  source: MemorySource;
  /** The messages it was read from. Omitted: they are not there any more, or it comes from no session. */
  messages?: MessageData[];
  /** Why there are no `messages`. */
  reason?: string;
  /** The snapshot that has them: it shows them in their conversation. */
  snapshotId?: string;
  /** The session that has them. */
  sessionId?: string;
}

/**
 * What to hear of: `GET api/live` with these parameters answers server-sent events, each with the name of a member of {@link LiveEvents} and JSON
 * as data. With `sessionId` it looks at that session, else at the 100 sessions written last; each look costs one request of the store.
 */
export interface LiveQuery extends TenantQuery {
  /** Look at this session. Default: at the list. */
  sessionId?: string;
  /** The latest leaf that the page knows. Default: the leaf as it is comes first. */
  leafId?: string;
  /** Read each new snapshot too, so that the page need not ask for it. Default: false. */
  follow?: boolean;
  /** Up to 20 snapshots that the page knows to be running; each costs one more request a look until it has ended. Default: none. */
  pending?: string[];
}

/** The events of `api/live`, by name. */
export interface LiveEvents {
  /** Sessions that were written, in no order, replacing the lines of the same ids. */
  sessions: { items: SessionLine[] };
  /** Snapshots that are new or changed, parents first, replacing the nodes of the same ids. */
  nodes: { nodes: TreeNode[] };
  /** With `follow`: the latest leaf. `messagesFrom` counts those that it has in common with the leaf of the look before. */
  snapshot: SnapshotView;
  /** The session is gone. */
  gone: Record<string, never>;
  /** A look failed; the next one comes all the same. */
  failure: InspectorFailure;
}
