import type { ActionContext, EmbedderArgument, MessageData, ModelArgument, z } from 'genkit';
import type { Json } from '../json/value.ts';
import type { Memory, MemoryJob, MemorySource, MemoryStore } from '../store/memory/contract.ts';
import type { MemoryScope } from './scopes.ts';
import type { MemorySearchOptions } from './search/types.ts';

/** The topics that need no description. */
export type BuiltInTopic =
  | 'USER_PERSONAL_INFORMATION'
  | 'USER_PREFERENCES'
  | 'EXPLICIT_INSTRUCTIONS'
  | 'KEY_CONVERSATION_DETAILS';

/** A kind of fact to remember. Of the facts that the model finds, those that fit no topic are left out; facts of the application need none. */
export interface MemoryTopic {
  /** Names the topic, and no other one: `business_feedback`. */
  readonly label: string;
  /** Tells the model which facts belong to the topic. */
  readonly description: string;
  /** Few-shot examples for the model. Default: none. */
  readonly examples?: readonly MemoryExample[];
  /** The schema of `data` of its memories. Default: they are text alone. */
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
  /** Says the fact in the third person. A longer text than 2,000 characters is cut. */
  readonly text: string;
  /** The fact in the shape of a topic's schema, or of the application's. */
  readonly data?: Json;
  /** Names that schema. Default: none; facts that the model finds have the label of their topic. */
  readonly schemaId?: string;
  /** Labels of its topics. Default: none. */
  readonly topics?: readonly string[];
  /** 0 to 1. Default: 0.5. */
  readonly importance?: number;
  /**
   * Of facts with the same key only one holds: the most trusted, then the newest, then the last given. A newer implicit fact does not
   * replace an explicit one. Default: it excludes no other fact.
   */
  readonly key?: string;
  /**
   * `procedural`: a way to do something. With `data: { task, steps }`, a text and a list of texts, it is merged with others: a step that both
   * have in equal words appears once. If that gives more than 40 steps, those of the later one remain. Without such data it is a text alone.
   * Default: `declarative`.
   */
  readonly kind?: Memory['kind'];
  /** The `positions` of the messages that say it. Default: all messages of the request may be the source. */
  readonly messages?: readonly number[];
  /** Whether the user asks to remember it; the source is then `explicit`. Only for facts from messages. Default: false. */
  readonly isExplicit?: boolean;
  /**
   * When to remove it; ISO 8601. A fact that expires does not replace a lasting one, unless both have the same `key`. Then the key has no fact
   * after the expiry: give a temporary fact another `key`. Default: never, or after `toolTtlMs` if a tool said it.
   */
  readonly expiresAt?: string;
}

/** The input of a {@link MemoryExtractor}. */
export interface ExtractionRequest {
  /** The scope into which is learned. */
  readonly scope: MemoryScope;
  /** The messages to learn from, redacted. The guards have checked them, except those of the assistant: its statements are no facts. */
  readonly messages: readonly MessageData[];
  /** The index of each of them in its session. */
  readonly positions: readonly number[];
  /** Aborts at the timeout. */
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
 * Returns the reason to quarantine a text, or nothing if the text is fine. If a guard throws, the job fails and is tried again. If it does
 * not answer within `limits.timeoutMs`, this text and all later ones of the job are quarantined.
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
   * Learns when the number of turns of a session is a multiple of this, and when this process has run so many turns of the session since it
   * last learned from it. A process counts for its 1,000 latest sessions. `1`: after each turn. Default: 5.
   */
  everyTurns?: number;
  /** When no turn came for this long, in ms, while the process runs. `false`: never. Default: 900,000 (15 minutes). */
  onIdleMs?: number | false;
  /** Whether `endSession` learns. With `false` it does nothing, and answers `known`. Default: true. */
  onSessionEnd?: boolean;
}

/** Limits of a {@link MemoryManagerOptions | manager}. */
export interface MemoryLimits {
  /** The most jobs of a tenant that wait or run; further ones are refused and reported. Default: 1,000. */
  maxJobs?: number;
  /** How often a job is tried before it goes to the dead letters. Default: 5. */
  maxAttempts?: number;
  /** A worker that does not renew its lease for this long loses the job, in ms. Default: 60,000. */
  leaseMs?: number;
  /**
   * A call of the model, the embedder, `extract`, `isSuccess` or `redact` that takes longer fails. If a guard takes longer, its text and all later ones
   * of the job are quarantined. In ms. Default: 60,000.
   */
  timeoutMs?: number;
  /** The wait before the second attempt, in ms. It doubles with each further one; each is then multiplied by 0.5 to 1.5. Default: 2,000. */
  backOffMs?: number;
  /** The longest wait between attempts before that factor, in ms. Default: 600,000 (10 minutes). */
  maxBackOffMs?: number;
  /** Memories that a job may invalidate; facts that would replace more are quarantined. Default: 3. */
  maxInvalidations?: number;
  /** Characters of a rolling summary. Default: 4,000. */
  summaryLength?: number;
}

/** How much to trust each type of source, 0 to 1. */
export type MemoryTrust = { readonly [type in MemorySource['type']]?: number };

/** A manager's report to the application. Contains no texts of messages or memories. */
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
  /** The job, where there is one. */
  readonly jobId?: string;
  /** The job's changes; with `committed`. */
  readonly changes?: MemoryChangeCounts;
  /** Attempts so far; with `failed` and `dead`. */
  readonly attempts?: number;
  /** Why; with `failed` and `dead`. */
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
  /** Memories that no longer hold, without those that the same job had created. */
  invalidated: number;
  /**
   * Facts that were known from the same source, that only the assistant stated, that fit no topic or are blank, or that the model found not
   * worth keeping.
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
   * Where the memories and the jobs are kept. Managers with the same store and tenant share the jobs: any of them carries out any job, with its
   * own options. So give them the same options, and a manager with other options a store of its own.
   */
  store: MemoryStore;
  /** Extracts facts and compares them with memories. Default: none; then `extract` is needed to learn from messages. */
  model?: ModelArgument;
  /** Makes vectors of memories and queries. Default: search is by words. */
  embedder?: EmbedderArgument;
  /** Options of the search. */
  search?: MemorySearchOptions;
  /** The topics to remember. Default: the four built-in topics. */
  topics?: readonly (BuiltInTopic | MemoryTopic)[];
  /**
   * Learns from messages without the model: `verbatim` keeps each message as a memory, a function finds the facts. Default: the model
   * extracts facts.
   */
  extract?: 'verbatim' | MemoryExtractor;
  /** When to learn from agents' sessions. */
  generate?: MemoryTriggers;
  /** Further checks of messages and memories. The built-in rules always apply. Default: none. */
  guards?: readonly MemoryGuard[];
  /**
   * Replaces personal values before anything is stored: in texts, in numbers as texts, in names of members of tools' inputs and answers, and
   * in what the model finds. `label` is the name of the member around the text. Returns the text, or an object with the text as `value`, as
   * `redactText` of `genkitx-agents/privacy` does. Has `limits.timeoutMs` for each text. Numbers of placeholders such as `[EMAIL_1]` are
   * removed, also by default: in different texts a number names different values. Default: all else is stored unchanged.
   */
  redact?: (text: string, options: { label?: string }) => string | RedactedText | Promise<string | RedactedText>;
  /** Whether a scope without a setting of its own may be learned about. Default: `on`. */
  consent?: 'on' | 'off';
  /** Whether to learn from the answers of tools, too. Such memories expire after `toolTtlMs`. Default: false. */
  learnFromTools?: boolean;
  /** How long a memory from a tool's answer is kept after `IngestSource.at`, in ms; at most 100 years. Default: 3,600,000 (an hour). */
  toolTtlMs?: number;
  /** How much to trust each type of source. Default: bootstrap 0.95, explicit 0.9, implicit 0.6, tool 0.3. */
  trust?: MemoryTrust;
  /** Whether to allow memories of an app, which all its users share. Each waits for `approve`. Default: false. */
  app?: boolean;
  /** The app of scopes that name none. Default: `default`. */
  appName?: string;
  /** Returns the id of the user of a context. Default: `auth.uid`. Agents with this memory need the same `userId`. */
  userId?: (context: ActionContext) => string | undefined;
  /**
   * The schema of the structured profile, which the `model` keeps up to date. Its members must be optional: `z.object({...}).partial()`. Facts
   * that expire are not in it. Default: no profile.
   */
  profile?: z.ZodTypeAny;
  /**
   * Whether the `model`, when it extracts facts, also keeps a rolling summary of each scope of a user or a session. One of an app would reach
   * users without approval. Default: false.
   */
  summary?: boolean;
  /** Whether a session was a success, from which a procedure is made. Default: no procedures are made. */
  isSuccess?: (session: {
    scope: MemoryScope;
    sourceId: string;
    messages: readonly MessageData[];
  }) => boolean | Promise<boolean>;
  /** Whether this process works on jobs after each `ingest`. Default: true; with `false` call `processMemoryJobs`. */
  worker?: boolean;
  /** Bounds of the queue, of jobs and of model calls. */
  limits?: MemoryLimits;
  /** Called with each report. Its errors are logged. Default: a full queue and dead jobs are logged. */
  onReport?: (report: MemoryReport) => void;
  /** The time in ms since 1970. Default: the clock of this process. */
  now?: () => number;
  /** A random number, at least 0 and below 1, to spread repeated attempts. Default: `Math.random`. */
  random?: () => number;
}

/** The source of messages or facts. */
export interface IngestSource {
  /** Names the source: a session, a document, an import. `forgetSource` takes it. */
  readonly id: string;
  /** Default: `bootstrap` for `memories`; else by fact: `explicit` if the user asks to remember it, `tool` from a tool, else `implicit`. */
  readonly type?: MemorySource['type'];
  /** 0 to 1. Default: the trust of its type. */
  readonly trust?: number;
  /** The session it was said in. */
  readonly sessionId?: string;
  /** The snapshot whose messages are read. `forgetSource` can forget it, such as that of an abandoned branch. */
  readonly snapshotId?: string;
  /** When it was said; ISO 8601. Default: with `sessionId` in place of `messages` when the session was last written, else now. */
  readonly at?: string;
}

/** Options of `ingest`: `messages`, `memories` or `sessionId`. */
export interface IngestOptions {
  /** The scope into which is learned. */
  scope: MemoryScope;
  /** The source. Required without `sessionId`. Default: the session, whose messages are then not read twice. */
  source?: IngestSource;
  /** All messages of the source so far, oldest first. Those that were read already are skipped. */
  messages?: readonly MessageData[];
  /**
   * Facts, in place of messages. A fact that the source stated before, or that waits in the queue, is skipped, unless the source has stated
   * something else since.
   */
  memories?: readonly (MemoryFact | string)[];
  /** A session of an agent with this memory, in place of messages. It is read from the agent's store, and may continue. */
  sessionId?: string;
  /** `verbatim`: each message becomes a memory, without a model. Default: the manager's option `extract`. */
  extract?: 'verbatim';
  /** Make a procedure of the source, or its last 384 KiB, if `isSuccess` agrees. Needs `messages` or `sessionId`. Default: false. */
  procedure?: boolean;
  /** Resolve when the work is done. Default: false; the work continues in the background. */
  wait?: boolean;
}

/** The result of an `ingest`. */
export interface IngestResult {
  /**
   * - `queued`: a worker will do it. With `wait`: it is behind a job that waits for its next attempt.
   * - `committed`: it is done (`wait`), or another process has removed its job. A text that a guard stopped is in quarantine, and not remembered.
   * - `known`: there is nothing to do. All was read or is in the queue; the session is gone; `isSuccess` refused it; the context of
   *   `endSession` names no user; or `onSessionEnd` of the manager or `learn` of `attach` is false.
   * - `failed`: an attempt failed; others follow, except for dead jobs (`wait`).
   * - `full`: the queue refused a part; call again later.
   * - `refused`: the scope's consent is off or was withdrawn, or the scope was erased or the source forgotten while the job ran.
   */
  readonly status: 'queued' | 'committed' | 'known' | 'failed' | 'full' | 'refused';
  /** The jobs that were added. */
  readonly jobIds: readonly string[];
}

/** A text that waits for a decision. */
export interface QuarantinedText {
  /** Names it in its scope. */
  readonly id: string;
  /** A message that was not learned from, or a memory that was not kept. */
  readonly kind: 'message' | 'memory';
  /** Why. */
  readonly reason: string;
  /** The text. */
  readonly text: string;
  /** The data of the memory, if it has some. */
  readonly data?: Json;
  /** `MemorySource.id`. */
  readonly sourceId: string;
  /** Since when it waits, in ISO 8601. */
  readonly at: string;
}

/** Which memories `prune` removes: those to which any member applies. */
export interface MemoryPrunePolicy {
  /** Memories that were made, got their last source or ceased to hold longer ago than this, in ms. Use does not count. */
  maxAgeMs?: number;
  /** Memories whose confidence is below this, 0 to 1. */
  minConfidence?: number;
  /** For `minConfidence` and `maxMemories`: confidence halves in this time without a new source, in ms. Default: it does not fall. */
  halfLifeMs?: number;
  /** Memories that were neither placed in a request nor changed for this long, in ms. Uses are known to the day: choose several days. */
  unusedMs?: number;
  /** The most memories that hold in a scope; of more, those with the least confidence plus importance go. */
  maxMemories?: number;
  /** Quarantined texts that have waited for a decision longer than this, in ms; also memories of an app that wait for approval. */
  quarantineMs?: number;
}

/** The counts of `processMemoryJobs`. */
export interface ProcessMemoryJobsResult {
  /** Jobs that this call found, and that are gone from the queue: done, dropped, or finished by another worker meanwhile. */
  done: number;
  /** Attempts that failed; the jobs wait for the next one. */
  failed: number;
  /** Jobs whose last attempt failed. */
  dead: number;
  /** Sessions with messages that were never enqueued. */
  found: number;
}

/** A line of `export`. A memory that changes while the export runs comes again: its later line replaces the earlier one. */
export interface MemoryExportLine {
  /** The kind of the line. The last one is `end`: an export without it was cut off. */
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
  /** The scope's answer about consent, if there is one. */
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
   * Cases without a result: the model, the extractor, a guard or `redact` failed, or the model's answer was malformed twice. They count as cases in
   * which nothing was found.
   */
  readonly failed: readonly FailedCase[];
}

/** A case, or a task, without a result. */
export interface FailedCase {
  /** Its index in `cases` or `tasks`. */
  readonly index: number;
  /** What was wrong. */
  readonly error: string;
}

/** The errors in a case. */
export interface CaseScore {
  /** Extracted memories that were not expected. */
  readonly unexpected: readonly string[];
  /** Expected memories that were not extracted. */
  readonly missing: readonly string[];
}
