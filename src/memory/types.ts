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

/** A kind of thing that is worth remembering. What fits no topic is not remembered. */
export interface MemoryTopic {
  /** Names the topic: `business_feedback`. */
  readonly label: string;
  /** What belongs to it, for the model. */
  readonly description: string;
  /** Few-shot examples for the model. Default: none. */
  readonly examples?: readonly MemoryExample[];
  /** The shape of `data` of its memories. Default: they are text alone. */
  readonly schema?: z.ZodTypeAny;
}

/** What was said, and what is to be remembered of it. */
export interface MemoryExample {
  /** What the user says. */
  readonly said: string;
  /** The memories that it makes, in the third person; none if it is not worth one. */
  readonly memories: readonly string[];
}

/** Something that was learned, before it is compared with what is known. */
export interface MemoryFact {
  /** Describes it, in the third person. At most 2,000 characters; what is longer is cut. */
  readonly text: string;
  /** The fact in the shape of a topic's schema, or of the application's. */
  readonly data?: Json;
  /** Names that schema. Default: the first topic that has one, if there is `data`. */
  readonly schemaId?: string;
  /** Labels of its topics. Default: none. */
  readonly topics?: readonly string[];
  /** 0 to 1. Default: 0.5. */
  readonly importance?: number;
  /** Names what it is about: of memories with the same key one holds, and a new one replaces it. Default: it excludes no other. */
  readonly key?: string;
  /** Default: `declarative`. */
  readonly kind?: Memory['kind'];
  /** Where it was said, as indexes of the messages. Default: anywhere in them. */
  readonly messages?: readonly number[];
  /** Whether the user wishes that it be remembered; counts if a message of the user says it. Default: false. */
  readonly isExplicit?: boolean;
  /** When it is to be removed; ISO 8601. Default: never, or after `toolTtlMs` if a tool said it. */
  readonly expiresAt?: string;
}

/** What an {@link MemoryExtractor} gets. */
export interface ExtractionRequest {
  /** Whose memories they become. */
  readonly scope: MemoryScope;
  /** What to learn from, guarded and redacted. */
  readonly messages: readonly MessageData[];
  /** The index of each of them in its session. */
  readonly positions: readonly number[];
  /** What is known of the earlier messages; `undefined` without a summary. */
  readonly summary: string | undefined;
  /** Aborts when the time is up. */
  readonly abortSignal: AbortSignal;
}

/** Finds what is worth remembering, in place of the model. */
export type MemoryExtractor = (
  request: ExtractionRequest,
) => readonly (MemoryFact | string)[] | Promise<readonly (MemoryFact | string)[]>;

/** What a {@link MemoryGuard} looks at. */
export interface GuardedText {
  /** A message, a memory that is to be kept, or a step of a procedure. */
  readonly text: string;
  /** Which of these. */
  readonly kind: 'message' | 'memory';
  /** Where the memory is to go. */
  readonly scope: MemoryScope;
  /** Who said it: the type of the source. */
  readonly type: MemorySource['type'];
}

/**
 * Answers why a text is to be quarantined, or nothing if it is fine. One that throws fails the job, which is tried again. One that does not
 * answer within `limits.timeoutMs` has the text quarantined, and those that follow in the job.
 */
export type MemoryGuard = MemoryGuardFunction | MemoryGuardRule;

/** A guard as a function. */
export type MemoryGuardFunction = (text: GuardedText) => string | undefined | Promise<string | undefined>;

/** A guard that finds values in texts, such as a privacy rule: what it finds is the reason. */
export interface MemoryGuardRule {
  /** Named by the reason. */
  readonly name: string;
  /** The values in a text. */
  readonly find: (text: string, options: object) => readonly FoundValue[] | Promise<readonly FoundValue[]>;
}

/** A value that a {@link MemoryGuardRule} found. */
export interface FoundValue {
  /** What it is. */
  readonly kind: string;
}

/** When an agent's session is learned from. */
export interface MemoryTriggers {
  /** After so many turns since the last time; `1`: after each turn. Default: 5. */
  everyTurns?: number;
  /** When no turn came for so long, in ms, while the process lives. Default: 900,000 (15 minutes). `false`: never. */
  onIdleMs?: number | false;
  /** When the application says that the session has ended. Default: true. */
  onSessionEnd?: boolean;
}

/** Limits of a {@link MemoryManagerOptions | manager}. */
export interface MemoryLimits {
  /** Jobs of a tenant that wait or run; what comes beyond is refused and reported. Default: 1,000. */
  maxJobs?: number;
  /** How often a job is tried before it goes to the dead letters. Default: 5. */
  maxAttempts?: number;
  /** A worker that is silent for so long has lost its job, in ms. Default: 60,000. */
  leaseMs?: number;
  /** A model call that takes longer has failed, a text whose guard takes longer is quarantined, in ms. Default: 60,000. */
  timeoutMs?: number;
  /** The wait before the second attempt, in ms; it doubles with each further one, give or take half of it. Default: 2,000. */
  backOffMs?: number;
  /** The longest wait between attempts, in ms. Default: 600,000 (10 minutes). */
  maxBackOffMs?: number;
  /** Memories that a job may invalidate; facts that would replace more are quarantined. Default: 3. */
  maxInvalidations?: number;
  /** Characters of a rolling summary. Default: 4,000. */
  summaryLength?: number;
}

/** How much to trust each type of source, 0 to 1. */
export type MemoryTrust = { readonly [type in MemorySource['type']]?: number };

/** What a manager tells the application. It holds nothing of what was said. */
export interface MemoryReport {
  /**
   * `committed`: a job has changed its scope; `failed`: an attempt failed; `dead`: it was the last one; `full`: the queue took no more;
   * `no-consent`: the scope's consent is off, so nothing is learned.
   */
  readonly type: 'committed' | 'failed' | 'dead' | 'full' | 'no-consent';
  /** Whose memories it is about. */
  readonly scope: MemoryScope;
  /** What was to be learned from. */
  readonly sourceId: string;
  /** The job, where there is one. */
  readonly jobId?: string;
  /** What was done; with `committed`. */
  readonly changes?: MemoryChangeCounts;
  /** Attempts so far; with `failed` and `dead`. */
  readonly attempts?: number;
  /** Why; with `failed` and `dead`. */
  readonly error?: string;
  /** How often this manager found the queue full; with `full`. */
  readonly refused?: number;
}

/** What a job did to the memories of its scope. */
export interface MemoryChangeCounts {
  /** New memories. */
  created: number;
  /** Memories that got another source, or another text. */
  updated: number;
  /** Memories that no longer hold. */
  invalidated: number;
  /** Facts that were known from the same source already, or that nothing is to be made of. */
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
  /** Where the memories are kept. */
  store: MemoryStore;
  /** Extracts and consolidates. Default: none; then `extract` is needed to learn from messages. */
  model?: ModelArgument;
  /** Makes vectors of memories and queries. Default: search is by words. */
  embedder?: EmbedderArgument;
  /** How memories are found. Default: the defaults of `MemorySearch`. */
  search?: Omit<MemorySearchOptions, 'embed' | 'clock'>;
  /** What is worth remembering. Default: the four built-in topics. */
  topics?: readonly (BuiltInTopic | MemoryTopic)[];
  /**
   * What to do with messages in place of asking the model: `verbatim` keeps each as a memory of its own, a function finds the facts.
   * Default: the model extracts.
   */
  extract?: 'verbatim' | MemoryExtractor;
  /** When agents' sessions are learned from. */
  generate?: MemoryTriggers;
  /** Further checks of messages and memories. The built-in rules always apply. Default: none. */
  guards?: readonly MemoryGuard[];
  /**
   * Replaces personal values before anything is stored; answers the text, or an object with it as `value`, as `redactText` of
   * `genkitx-agents/privacy` does. Its placeholders lose their numbers, which would name different values in different texts. Default: texts are
   * stored as they are.
   */
  redact?: (text: string) => string | RedactedText | Promise<string | RedactedText>;
  /** Whether a scope without a setting of its own may be learned about. Default: `on`. */
  consent?: 'on' | 'off';
  /** Learn from what tools answered too. Such memories expire after `toolTtlMs`. Default: false. */
  learnFromTools?: boolean;
  /** How long a memory that a tool's answer made is kept, in ms. Default: 3,600,000 (an hour). */
  toolTtlMs?: number;
  /** How much to trust each type of source. Default: bootstrap 0.95, explicit 0.9, implicit 0.6, tool 0.3. */
  trust?: MemoryTrust;
  /** Whether memories of an app, which all its users share, may be made; each waits for `approve`. Default: false. */
  app?: boolean;
  /** The app of scopes that name none. Default: `default`. */
  appName?: string;
  /** The user of a context. Default: `auth.uid`, as agents have it. */
  userId?: (context: ActionContext) => string | undefined;
  /** The shape of the structured profile, which the model keeps up to date. Default: no profile. */
  profile?: z.ZodTypeAny;
  /** Whether the model keeps a rolling summary of each scope. Default: false. */
  summary?: boolean;
  /** Says whether a session was a success, so that a procedure is made of it. Default: no procedures are made. */
  isSuccess?: (session: {
    scope: MemoryScope;
    sourceId: string;
    messages: readonly MessageData[];
  }) => boolean | Promise<boolean>;
  /** Whether this process works on jobs after each `ingest`. Default: true; with `false` call `processMemoryJobs`. */
  worker?: boolean;
  /** Bounds of the queue, of jobs and of model calls. */
  limits?: MemoryLimits;
  /** Hears what was refused, done and failed. It must not throw. Default: failures go to the log. */
  onReport?: (report: MemoryReport) => void;
  /** Milliseconds since 1970. Default: the clock of this process. */
  now?: () => number;
  /** At least 0, below 1: spreads repeated attempts. Default: `Math.random`. */
  random?: () => number;
}

/** Where messages or facts come from. */
export interface IngestSource {
  /** Names the source: a session, a document, an import. `forgetSource` takes it. */
  readonly id: string;
  /** Default: as the user said it; `bootstrap` for `memories`. */
  readonly type?: MemorySource['type'];
  /** 0 to 1. Default: by its type. */
  readonly trust?: number;
  /** The session it was said in. */
  readonly sessionId?: string;
  /** The snapshot whose messages they are: the branch, if it is abandoned. */
  readonly snapshotId?: string;
  /** When it was said; ISO 8601. Default: now. */
  readonly at?: string;
}

/** Options of `ingest`: `messages`, `memories` or `sessionId`. */
export interface IngestOptions {
  /** Whose memories they become. */
  scope: MemoryScope;
  /** Where they come from. Default: with `sessionId` the session, whose turns are then not read twice. */
  source?: IngestSource;
  /** All messages of the source so far, oldest first: what was read already is not read again. */
  messages?: readonly MessageData[];
  /** What is known already, in place of messages. */
  memories?: readonly (MemoryFact | string)[];
  /** A session of an agent with this memory, in place of messages: it is read from the agent's store, and goes on. */
  sessionId?: string;
  /** `verbatim`: each message becomes a memory, without a model. Default: as the manager says. */
  extract?: 'verbatim';
  /** Make a procedure of the whole source, if `isSuccess` says that it was one. Needs `messages` or `sessionId`. Default: false. */
  procedure?: boolean;
  /** Answer when the work is done. Default: false; the work goes on in the background. */
  wait?: boolean;
}

/** What became of an `ingest`. */
export interface IngestResult {
  /**
   * `queued`: a worker will do it; `committed`: it is done (`wait`); `known`: all of it was read, or is being read; `failed`: an attempt failed, others
   * follow unless it is in the dead letters (`wait`); `full`: the queue took not all of it, call again later; `refused`: the scope's consent is off, or it was erased meanwhile.
   */
  readonly status: 'queued' | 'committed' | 'known' | 'failed' | 'full' | 'refused';
  /** The jobs that were added. */
  readonly jobIds: readonly string[];
}

/** What waits for a decision. */
export interface QuarantinedText {
  /** Names it in its scope. */
  readonly id: string;
  /** A message that was not read, or a memory that was not kept. */
  readonly kind: 'message' | 'memory';
  /** Why. */
  readonly reason: string;
  /** What it says. */
  readonly text: string;
  /** `MemorySource.id`. */
  readonly sourceId: string;
  /** ISO 8601. */
  readonly at: string;
}

/** What `prune` removes; the members add up. */
export interface MemoryPrunePolicy {
  /** Memories that were not changed for so long, in ms. */
  maxAgeMs?: number;
  /** Memories whose confidence has fallen below this, 0 to 1. */
  minConfidence?: number;
  /** For `minConfidence`: confidence halves in so many ms without a new source. Default: it does not fall. */
  halfLifeMs?: number;
  /** Memories that were neither placed in a request nor changed for so long, in ms. */
  unusedMs?: number;
  /** Of each scope, all but so many memories that hold; those with the least confidence and importance go. */
  maxMemories?: number;
  /** Memories that have ceased to hold for so long, in ms. */
  invalidMs?: number;
}

/** What `processMemoryJobs` did. */
export interface ProcessMemoryJobsResult {
  /** Jobs that were carried out. */
  done: number;
  /** Attempts that failed; the jobs wait for the next one. */
  failed: number;
  /** Jobs that went to the dead letters. */
  dead: number;
  /** Sessions with messages that were never enqueued. */
  found: number;
}

/** A line of `export`. */
export interface MemoryExportLine {
  /** What the line is. The last one is `end`: an export without it was cut off. */
  readonly kind: 'memory' | 'profile' | 'summary' | 'quarantine' | 'job' | 'consent' | 'end';
  /** A memory as it is. */
  readonly memory?: Memory;
  /** All that it was, oldest first. */
  readonly revisions?: readonly Memory[];
  /** The structured profile. */
  readonly profile?: Json;
  /** The rolling summary. */
  readonly summary?: string;
  /** What waits for a decision. */
  readonly quarantine?: QuarantinedText;
  /** What is to be learned from. */
  readonly job?: MemoryJob;
  /** Whether the scope may be learned about, where it was said. */
  readonly consent?: 'on' | 'off';
  /** Lines of memories; with `end`. */
  readonly memories?: number;
}

/** A conversation of a golden set, and what is to be remembered of it. */
export interface GoldenCase {
  /** What was said. */
  readonly messages: readonly MessageData[];
  /** The memories that it should make. */
  readonly expected: readonly string[];
}

/** How well extraction does. All three are 0 to 1. */
export interface ExtractionScores {
  /** Of what was extracted, how much was expected. */
  readonly precision: number;
  /** Of what was expected, how much was extracted. */
  readonly recall: number;
  /** Their harmonic mean. */
  readonly f1: number;
  /** The cases, in their order. */
  readonly cases: readonly CaseScore[];
}

/** What went wrong in a case. */
export interface CaseScore {
  /** What was extracted although it was not expected. */
  readonly unexpected: readonly string[];
  /** What was expected, and not extracted. */
  readonly missing: readonly string[];
}
