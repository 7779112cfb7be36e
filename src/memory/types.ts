import type { ActionContext, EmbedderArgument, MessageData, ModelArgument, z } from 'genkit';
import type { Json } from '../json/value.ts';
import type { Memory, MemoryJob, MemorySource, MemoryStore } from '../store/memory/contract.ts';
import type { MemoryScope } from './scopes.ts';
import type { MemorySearchOptions } from './search/types.ts';

/** The built-in topics. They need no description. */
export type BuiltInTopic =
  | 'USER_PERSONAL_INFORMATION'
  | 'USER_PREFERENCES'
  | 'EXPLICIT_INSTRUCTIONS'
  | 'KEY_CONVERSATION_DETAILS';

/** A kind of fact to remember. A fact that the model finds is ignored if it fits no topic. A fact from the application needs no topic. */
export interface MemoryTopic {
  /** Names the topic, for example `business_feedback`. Unique. */
  readonly label: string;
  /** Tells the model which facts belong to the topic. */
  readonly description: string;
  /** Few-shot examples for the model. Default: none. */
  readonly examples?: readonly MemoryExample[];
  /** The schema of `data` of its memories. Default: the memories have only text. */
  readonly schema?: z.ZodTypeAny;
}

/** A message, and the memories to make from it. */
export interface MemoryExample {
  /** The user's message. */
  readonly said: string;
  /** The memories, in the third person; empty if none should be made. If the topic has a schema, each with its `data`. */
  readonly memories: readonly (string | Pick<MemoryFact, 'text' | 'data'>)[];
}

/** A fact, before it is compared with the known memories. All members but `text` take at most 112 KiB as JSON. */
export interface MemoryFact {
  /** States the fact in the third person. A text longer than 2,000 characters is cut. */
  readonly text: string;
  /** The fact in the shape of the topic's schema or of a schema of the application. */
  readonly data?: Json;
  /** Names the schema of `data`. Default: none; a fact that the model finds has the label of its topic. */
  readonly schemaId?: string;
  /** Labels of its topics. Default: none. */
  readonly topics?: readonly string[];
  /** 0 to 1. Default: 0.5. */
  readonly importance?: number;
  /**
   * Only one fact of each key is valid: the most trusted one, then the newest, then the last in the list. A newer implicit fact does not
   * replace an explicit one. Default: the fact does not exclude others.
   */
  readonly key?: string;
  /**
   * `procedural`: a way to do something. With `data: { task, steps }`, a string and a list of strings, it is merged with similar
   * procedures: a step that both contain in equal words appears once. If the result has more than 40 steps, only the steps of the later one
   * remain. Without such data it is only a text. Default: `declarative`.
   */
  readonly kind?: Memory['kind'];
  /** The `positions` of the messages that state it. Default: all messages of the request may be the source. */
  readonly messages?: readonly number[];
  /** Whether the user asks to remember it; the source is then `explicit`. Only for facts from messages. Default: false. */
  readonly isExplicit?: boolean;
  /**
   * When to remove it; ISO 8601. A fact that expires replaces a lasting fact only if both have the same `key`. Then the key has no fact
   * after the expiry, so give a temporary fact its own `key`. Default: never, or after `toolTtlMs` if a tool stated it.
   */
  readonly expiresAt?: string;
}

/** The input of a {@link MemoryExtractor}. */
export interface ExtractionRequest {
  /** The scope that gets the memories. */
  readonly scope: MemoryScope;
  /**
   * The messages to learn from, redacted. The guards have checked them, except the assistant's messages, because those are not a source of
   * facts.
   */
  readonly messages: readonly MessageData[];
  /** The index of each of them in its session. */
  readonly positions: readonly number[];
  /** Aborts at the timeout, `limits.timeoutMs`. */
  readonly abortSignal: AbortSignal;
}

/** Finds the facts to remember, in place of the model. */
export type MemoryExtractor = (
  request: ExtractionRequest,
) => readonly (MemoryFact | string)[] | Promise<readonly (MemoryFact | string)[]>;

/** A text for a {@link MemoryGuard}. */
export interface GuardedText {
  /** The text of a message, or of a new memory with its key and data. */
  readonly text: string;
  /** `message`: a message. `memory`: a new memory. Messages of the assistant are not checked when facts are extracted; each fact is. */
  readonly kind: 'message' | 'memory';
  /** The scope of the memory. */
  readonly scope: MemoryScope;
  /** The type of its source. */
  readonly type: MemorySource['type'];
}

/**
 * Returns the reason to quarantine a text, or `undefined` to accept it. If a guard throws, the job fails and is tried again. If a guard
 * does not answer within `limits.timeoutMs`, this text and all later texts of the job are quarantined.
 */
export type MemoryGuard = ((text: GuardedText) => string | undefined | Promise<string | undefined>) | MemoryGuardRule;

/** A guard that finds values in texts, such as a privacy rule. A text with such a value is quarantined. */
export interface MemoryGuardRule {
  /** Appears in the reason. */
  readonly name: string;
  /** The values in a text. */
  readonly find: (text: string, options: object) => readonly FoundValue[] | Promise<readonly FoundValue[]>;
}

/** A value that a {@link MemoryGuardRule} found. */
export interface FoundValue {
  /** The kind of the value; appears in the reason. */
  readonly kind: string;
}

/** When to learn from an agent's session. */
export interface MemoryTriggers {
  /**
   * Learns when the number of turns of a session is a multiple of this, and when this process has run this many turns of the session since
   * it last learned from it. A process counts the turns of its 1,000 latest sessions. `1`: after each turn. Default: 5.
   */
  everyTurns?: number;
  /** Learns when the session had no turn for this time, in ms, while the process runs. `false`: never. Default: 900,000 (15 minutes). */
  onIdleMs?: number | false;
  /** Whether `endSession` learns. With `false` it does nothing and returns `known`. Default: true. */
  onSessionEnd?: boolean;
}

/** Limits of a {@link MemoryManagerOptions | manager}. */
export interface MemoryLimits {
  /** The most jobs of a tenant that wait or run. Further jobs are refused and reported. Default: 1,000. */
  maxJobs?: number;
  /** The most attempts at a job; then the job is dead. Default: 5. */
  maxAttempts?: number;
  /** A worker that does not renew its lease for this long loses the job, in ms. Default: 60,000. */
  leaseMs?: number;
  /**
   * The time limit for each call of the model, the embedder, `extract`, `isSuccess` or `redact`, in ms; a call that takes longer fails. If
   * a guard takes longer, its text and all later texts of the job are quarantined. Default: 60,000.
   */
  timeoutMs?: number;
  /**
   * The wait before the second attempt, in ms. It doubles for each further attempt. Each wait is then multiplied by a random factor of 0.5
   * to 1.5. Default: 2,000.
   */
  backOffMs?: number;
  /** The longest wait between attempts, before the random factor, in ms. Default: 600,000 (10 minutes). */
  maxBackOffMs?: number;
  /** The most memories that a job may invalidate. Facts that would replace more are quarantined. Default: 3. */
  maxInvalidations?: number;
  /** The most characters of a rolling summary. Default: 4,000. */
  summaryLength?: number;
}

/** The trust in each type of source, 0 to 1. */
export type MemoryTrust = { readonly [type in MemorySource['type']]?: number };

/** A report of the manager to the application. Contains no texts of messages or memories. */
export interface MemoryReport {
  /**
   * `committed`: a job is done; `failed`: an attempt failed; `dead`: the last attempt failed; `full`: the queue refused a job;
   * `no-consent`: the scope's consent is off, so nothing is learned.
   */
  readonly type: 'committed' | 'failed' | 'dead' | 'full' | 'no-consent';
  /** The scope of the report. */
  readonly scope: MemoryScope;
  /** The source to learn from. */
  readonly sourceId: string;
  /** The id of the job, if the report is about a job. */
  readonly jobId?: string;
  /** The number of the job's changes; with `committed`. */
  readonly changes?: MemoryChangeCounts;
  /** The number of attempts so far; with `failed` and `dead`. */
  readonly attempts?: number;
  /** The error message; with `failed` and `dead`. */
  readonly error?: string;
  /** How often this manager found the queue full; with `full`. */
  readonly refused?: number;
}

/** Counts of a job's changes. */
export interface MemoryChangeCounts {
  /** New memories. */
  created: number;
  /** Memories with a new source or a new text. */
  updated: number;
  /** Memories that are no longer valid, without those that the same job had created. */
  invalidated: number;
  /**
   * Facts that were not kept: the same source had stated them before, only the assistant stated them, they fit no topic, they are blank, or
   * the model decided that they are not worth keeping.
   */
  ignored: number;
  /** Texts that wait for a decision. */
  quarantined: number;
}

/** A text whose personal values are replaced. */
export interface RedactedText {
  /** The text. */
  readonly value: string;
}

/** Options of `memoryManager`. */
export interface MemoryManagerOptions {
  /**
   * Stores the memories and the jobs. Managers with the same store and tenant share the jobs: each of them may run any job, with its own
   * options. So give them the same options, and give a manager with other options its own store.
   */
  store: MemoryStore;
  /** Extracts facts and compares them with memories. Default: none; then learning from messages needs `extract`. */
  model?: ModelArgument;
  /** Makes vectors of memories and queries. Default: none; the search is by words only. */
  embedder?: EmbedderArgument;
  /** Options of the search. */
  search?: MemorySearchOptions;
  /** The topics to remember. Default: the four built-in topics. */
  topics?: readonly (BuiltInTopic | MemoryTopic)[];
  /**
   * Learns from messages without the model: `verbatim` stores each message as a memory; a function returns the facts. Default: the model
   * extracts facts.
   */
  extract?: 'verbatim' | MemoryExtractor;
  /** When to learn from agents' sessions. */
  generate?: MemoryTriggers;
  /** Further checks of messages and memories. The built-in rules always apply. Default: none. */
  guards?: readonly MemoryGuard[];
  /**
   * Replaces personal values before anything is stored. Called with texts, with numbers as strings, with member names in the inputs and
   * outputs of tools, and with the facts that the model finds. `label` is the name of the member that contains the text. Returns the text,
   * or an object with the text as `value`, as `redactText` of `genkitx-agents/privacy` does. Each call may take `limits.timeoutMs`. The
   * numbers of placeholders such as `[EMAIL_1]` are always removed, because the same number names different values in different texts.
   * Default: everything else is stored unchanged.
   */
  redact?: (text: string, options: { label?: string }) => string | RedactedText | Promise<string | RedactedText>;
  /** The consent of a scope for which `consent.set` was not called. Default: `on`. */
  consent?: 'on' | 'off';
  /** Whether to learn from the outputs of tools too. Such memories expire after `toolTtlMs`. Default: false. */
  learnFromTools?: boolean;
  /** How long a memory from a tool's output is kept after `IngestSource.at`, in ms; at most 100 years. Default: 3,600,000 (an hour). */
  toolTtlMs?: number;
  /** The trust in each type of source. Default: bootstrap 0.95, explicit 0.9, implicit 0.6, tool 0.3. */
  trust?: MemoryTrust;
  /** Whether to allow memories of an app, which all its users share. Each such memory waits for `approve`. Default: false. */
  app?: boolean;
  /** The app of a scope without an `appName`. Default: `default`. */
  appName?: string;
  /** Returns the user id of a context. Default: `auth.uid`. Agents with this memory need the same `userId`. */
  userId?: (context: ActionContext) => string | undefined;
  /**
   * The schema of the structured profile, which the `model` keeps up to date. All its members must be optional:
   * `z.object({...}).partial()`. The profile does not contain facts that expire. Default: no profile.
   */
  profile?: z.ZodTypeAny;
  /**
   * Whether the `model` also writes a rolling summary of each user scope and session scope when it extracts facts. An app scope has no
   * summary, because it would reach users without approval. Default: false.
   */
  summary?: boolean;
  /** Returns whether a session was a success. Procedures are made only from successful sessions. Default: no procedures are made. */
  isSuccess?: (session: {
    scope: MemoryScope;
    sourceId: string;
    messages: readonly MessageData[];
  }) => boolean | Promise<boolean>;
  /** Whether this process works on jobs after each `ingest`. Default: true; with `false` call `processMemoryJobs`. */
  worker?: boolean;
  /** Limits of the queue, of jobs and of calls. */
  limits?: MemoryLimits;
  /** Called with each report. Its errors are logged. Default: a full queue and dead jobs are logged. */
  onReport?: (report: MemoryReport) => void;
  /** The time in ms since 1970. Default: the clock of this process, by which it is also decided whether a session is idle. */
  now?: () => number;
  /** A random number, at least 0 and below 1, to spread repeated attempts. Default: `Math.random`. */
  random?: () => number;
}

/** The source of messages or facts. */
export interface IngestSource {
  /** Names the source: a session, a document, an import. Pass it to `forgetSource` to forget the source. */
  readonly id: string;
  /**
   * Default: `bootstrap` for `memories`. For messages it depends on the fact: `explicit` if the user asks to remember it, `tool` if it
   * comes from a tool, else `implicit`.
   */
  readonly type?: MemorySource['type'];
  /** 0 to 1. Default: the trust of its type. */
  readonly trust?: number;
  /** The session in which it was said. */
  readonly sessionId?: string;
  /** The snapshot whose messages are read. `forgetSource` can forget one snapshot, for example of an abandoned branch. */
  readonly snapshotId?: string;
  /** When it was said; ISO 8601. Default: now; for an ingest of a `sessionId`, when the session was last written. */
  readonly at?: string;
}

/** Options of `ingest`: `messages`, `memories` or `sessionId`. */
export interface IngestOptions {
  /** The scope that gets the memories. */
  scope: MemoryScope;
  /** The source. Required without `sessionId`. Default: the session, so that its messages are not read twice. */
  source?: IngestSource;
  /** All messages of the source so far, oldest first. Messages that were read before are skipped. */
  messages?: readonly MessageData[];
  /**
   * Facts instead of messages. A fact is skipped if the source stated it before or if it waits in the queue, unless the source has stated
   * something else since.
   */
  memories?: readonly (MemoryFact | string)[];
  /**
   * A session of an agent with this memory, instead of messages. It is read from the agent's store. The session may continue afterwards.
   */
  sessionId?: string;
  /** `verbatim`: each message becomes a memory, without a model. Default: the manager's option `extract`. */
  extract?: 'verbatim';
  /**
   * Makes a procedure of the source, or of its last 384 KiB, if `isSuccess` returns true. Needs `messages` or `sessionId`. Default: false.
   */
  procedure?: boolean;
  /** Whether to resolve only when the work is done. Default: false; the work continues in the background. */
  wait?: boolean;
}

/** The result of an `ingest`. */
export interface IngestResult {
  /**
   * - `queued`: a worker will run the jobs. With `wait`: the jobs are behind a job that waits for its next attempt.
   * - `committed` (only with `wait`): the jobs are done, or another process has removed them. A text that a guard stopped is in quarantine
   *   and is not remembered.
   * - `known`: there is nothing to do. Everything was read before or is in the queue; the session no longer exists; `isSuccess` returned
   *   false; the context of `endSession` names no user; or `onSessionEnd` of the manager or `learn` of `attach` is false.
   * - `failed` (only with `wait`): an attempt failed. Unless the job is dead, it is tried again. Also if there is nothing to do but messages
   *   of a dead job: `jobIds` is empty then.
   * - `full`: the queue refused at least one job. Call again later.
   * - `refused`: the scope's consent is off, or the consent was withdrawn, the scope erased or the source forgotten while the job ran.
   */
  readonly status: 'queued' | 'committed' | 'known' | 'failed' | 'full' | 'refused';
  /** The jobs that were added. */
  readonly jobIds: readonly string[];
}

/** A text that waits for a decision. */
export interface QuarantinedText {
  /** Identifies the text within its scope. */
  readonly id: string;
  /** `message`: a message from which nothing was learned; `memory`: a memory that was not kept. */
  readonly kind: 'message' | 'memory';
  /** Why the text was quarantined. */
  readonly reason: string;
  /** The text. */
  readonly text: string;
  /** The data of the memory, if it has data. */
  readonly data?: Json;
  /** `MemorySource.id`. */
  readonly sourceId: string;
  /** When it was quarantined; ISO 8601. */
  readonly at: string;
}

/** Selects the memories that `prune` removes: a memory is removed if any member applies to it. */
export interface MemoryPrunePolicy {
  /**
   * Memories that were created, got their last source or became invalid longer ago than this, in ms. The use of a memory does not count.
   */
  maxAgeMs?: number;
  /** Memories whose confidence is below this, 0 to 1. */
  minConfidence?: number;
  /**
   * For `minConfidence` and `maxMemories`: the time without a new source in which confidence halves, in ms. Default: confidence does not
   * fall.
   */
  halfLifeMs?: number;
  /**
   * Memories that were neither placed in a request nor changed for this time, in ms. Uses are stored at most once a day, so choose several
   * days.
   */
  unusedMs?: number;
  /** The most valid memories of a scope. If there are more, the memories with the lowest sum of confidence and importance are removed. */
  maxMemories?: number;
  /** Quarantined texts that have waited for a decision longer than this, in ms. Includes memories of an app that wait for approval. */
  quarantineMs?: number;
}

/** The counts of `processMemoryJobs`. */
export interface ProcessMemoryJobsResult {
  /** Jobs that this call found and that are no longer in the queue: done, dropped, or finished by another worker. */
  done: number;
  /** Attempts that failed; the jobs wait for the next one. */
  failed: number;
  /** Jobs whose last attempt failed. */
  dead: number;
  /** Sessions with messages that were not enqueued before. */
  found: number;
}

/** A line of `export`. A memory that changes during the export has another line, which replaces the earlier one. */
export interface MemoryExportLine {
  /** The kind of the line. The last line is `end`; an export without it is incomplete. */
  readonly kind: 'memory' | 'profile' | 'summary' | 'quarantine' | 'job' | 'consent' | 'end';
  /** A memory in its current form. */
  readonly memory?: Memory;
  /** Its revisions, oldest first. */
  readonly revisions?: readonly Memory[];
  /** The structured profile. */
  readonly profile?: Json;
  /** The rolling summary. */
  readonly summary?: string;
  /** A text that waits for a decision. */
  readonly quarantine?: QuarantinedText;
  /** A job that waits, runs or is dead. */
  readonly job?: MemoryJob;
  /** The consent of the scope, if `consent.set` was called for it. */
  readonly consent?: 'on' | 'off';
  /** The number of lines with a memory; with `end`. */
  readonly memories?: number;
}

/** A conversation of a golden set, and the expected memories. */
export interface GoldenCase {
  /** The conversation. */
  readonly messages: readonly MessageData[];
  /** The expected memories. */
  readonly expected: readonly string[];
}

/** Scores of the extraction, 0 to 1. */
export interface ExtractionScores {
  /** The share of extracted memories that were expected. */
  readonly precision: number;
  /** The share of expected memories that were extracted. */
  readonly recall: number;
  /** Their harmonic mean. */
  readonly f1: number;
  /** The cases, in their order. */
  readonly cases: readonly CaseScore[];
  /**
   * Cases without a result: the model, the extractor, a guard or `redact` failed, or the model's answer was malformed twice. They are
   * scored as cases in which nothing was found.
   */
  readonly failed: readonly FailedCase[];
}

/** A case, or a task, without a result. */
export interface FailedCase {
  /** Its index in `cases` or `tasks`. */
  readonly index: number;
  /** The error message. */
  readonly error: string;
}

/** The errors in a case. */
export interface CaseScore {
  /** Extracted memories that were not expected. */
  readonly unexpected: readonly string[];
  /** Expected memories that were not extracted. */
  readonly missing: readonly string[];
}
