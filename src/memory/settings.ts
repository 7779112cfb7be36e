import type { ActionContext, EmbedderArgument, ModelArgument, z } from 'genkit';
import { logger } from 'genkit/logging';
import { describeThrown, invalidArgument, quote } from '../errors.ts';
import { assertId } from '../snapshot/ids.ts';
import {
  checkOptions,
  isActionArgument,
  isBoolean,
  isFunction,
  isListOf,
  isObject,
  isOneOf,
  isShare,
  isText,
  isTextOrObject,
  isTimerMs,
  isWhole,
  withDefaults,
  type OptionCheck,
} from '../store/check-options.ts';
import { TRUST } from './pipeline/records/candidate.ts';
import { isSchema, settleTopics } from './pipeline/extract/topics.ts';
import { withinTime } from './within-time.ts';
import type { MemoryStore } from '../store/memory/contract.ts';
import type {
  MemoryExtractor,
  MemoryGuard,
  MemoryLimits,
  MemoryManagerOptions,
  MemoryReport,
  MemoryTopic,
  MemoryTriggers,
  MemoryTrust,
} from './types.ts';

const LIMITS: Required<MemoryLimits> = {
  maxJobs: 1_000,
  maxAttempts: 5,
  leaseMs: 60_000,
  timeoutMs: 60_000,
  backOffMs: 2_000,
  maxBackOffMs: 600_000,
  maxInvalidations: 3,
  summaryLength: 4_000,
};

const LIMIT_CHECKS: Readonly<Record<keyof MemoryLimits, OptionCheck>> = {
  maxJobs: isWhole(1),
  maxAttempts: isWhole(1),
  leaseMs: isTimerMs(1),
  timeoutMs: isTimerMs(1),
  backOffMs: isTimerMs(1),
  maxBackOffMs: isTimerMs(1),
  maxInvalidations: isWhole(0),
  summaryLength: isWhole(1),
};

/** Later dates may have no form in ISO 8601 that sorts like the others. */
const HUNDRED_YEARS_MS = 3_155_760_000_000;

const TRIGGERS: Required<MemoryTriggers> = { everyTurns: 5, onIdleMs: 900_000, onSessionEnd: true };

const isStore: OptionCheck = (value) => {
  const { claimJob, getSnapshot } = (value ?? {}) as { claimJob?: unknown; getSnapshot?: unknown };
  if (typeof claimJob === 'function') return undefined;
  return `a memory store, such as FileMemoryStore${typeof getSnapshot === 'function' ? ', not a session store' : ''}`;
};
const isGuard: OptionCheck = (value) =>
  [value, (value as { find?: unknown } | null)?.find].some((find) => typeof find === 'function')
    ? undefined
    : 'a guard';

/** Replaces personal values in a text. */
export type Redact = (text: string) => Promise<string>;

/** The options of a manager with their defaults. */
export interface MemorySettings {
  readonly store: MemoryStore;
  readonly model: ModelArgument | undefined;
  readonly embedder: EmbedderArgument | undefined;
  readonly topics: readonly MemoryTopic[];
  readonly extract: 'verbatim' | MemoryExtractor | undefined;
  readonly guards: readonly MemoryGuard[];
  readonly redact: Redact | undefined;
  readonly consent: 'on' | 'off';
  readonly learnFromTools: boolean;
  readonly toolTtlMs: number;
  readonly trust: Required<MemoryTrust>;
  readonly profile: z.ZodTypeAny | undefined;
  readonly summary: boolean;
  readonly isSuccess: MemoryManagerOptions['isSuccess'];
  readonly limits: Required<MemoryLimits>;
  readonly triggers: Required<MemoryTriggers>;
  readonly appName: string;
  readonly userIdOf: (context: ActionContext) => string | undefined;
  /** Whether `userIdOf` is the application's. */
  readonly hasUserId: boolean;
  readonly app: boolean;
  /** Whether this process works on jobs in the background. */
  readonly worker: boolean;
  readonly now: () => number;
  readonly random: () => number;
  readonly report: (report: MemoryReport) => void;
}

/**
 * Checks the options, and applies the defaults.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function settleManager(options: MemoryManagerOptions): MemorySettings {
  checkOptions('memoryManager', options, {
    store: isStore,
    model: isActionArgument,
    embedder: isActionArgument,
    topics: isListOf(isTextOrObject, 'names of topics, or of { label, description }'),
    extract: (value) => (value === 'verbatim' || typeof value === 'function' ? undefined : "'verbatim' or a function"),
    generate: isObject,
    guards: isListOf(isGuard, 'functions, or of rules { name, find }'),
    search: isObject,
    redact: isFunction,
    consent: isOneOf('on', 'off'),
    learnFromTools: isBoolean,
    toolTtlMs: isWhole(1, HUNDRED_YEARS_MS),
    trust: isObject,
    app: isBoolean,
    appName: isText,
    userId: isFunction,
    profile: isSchema,
    summary: isBoolean,
    isSuccess: isFunction,
    worker: isBoolean,
    limits: isObject,
    onReport: isFunction,
    now: isFunction,
    random: isFunction,
  });
  if (options?.store === undefined)
    throw invalidArgument('memoryManager needs a memory store, such as FileMemoryStore.');
  const { store, model, embedder, extract, profile, redact, isSuccess, onReport = logFailure } = options;
  // The model leaves out members that it does not know, and at first it knows none.
  if (profile && !profile.safeParse({}).success) {
    throw invalidArgument(
      'memoryManager: profile: its members must be optional, because little is known of a new user: use z.object({...}).partial().',
    );
  }
  const { appName = 'default', trust = {}, limits = {}, generate = {} } = options;
  assertId(appName, 'appName');
  checkOptions('memoryManager: trust', trust, {
    bootstrap: isShare,
    explicit: isShare,
    implicit: isShare,
    tool: isShare,
  });
  checkOptions('memoryManager: limits', limits, LIMIT_CHECKS);
  checkOptions('memoryManager: generate', generate, {
    everyTurns: isWhole(1),
    onIdleMs: (value) => (value === false ? undefined : isTimerMs(1)(value)),
    onSessionEnd: isBoolean,
  });
  const settledLimits = withDefaults(LIMITS, limits);
  return {
    store,
    model,
    embedder,
    topics: settleTopics(options.topics),
    extract,
    guards: options.guards ?? [],
    redact: redact && redactor(redact),
    consent: options.consent ?? 'on',
    learnFromTools: options.learnFromTools ?? false,
    toolTtlMs: options.toolTtlMs ?? 3_600_000,
    trust: withDefaults(TRUST, trust),
    profile,
    summary: options.summary ?? false,
    isSuccess:
      isSuccess &&
      ((session) =>
        withinTime('isSuccess', settledLimits.timeoutMs, new AbortController().signal, async () => isSuccess(session))),
    limits: settledLimits,
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    report: (report) => {
      try {
        onReport(report);
      } catch (error) {
        logger.error(`onReport of memoryManager threw; the work goes on. ${describeThrown(error)}`);
      }
    },
    appName,
    userIdOf: options.userId ?? verifiedUser,
    hasUserId: options.userId !== undefined,
    triggers: withDefaults(TRIGGERS, generate),
    app: options.app ?? false,
    worker: options.worker ?? true,
  };
}

function redactor(redact: NonNullable<MemoryManagerOptions['redact']>): Redact {
  return async (text) => {
    const answer = await redact(text);
    const redacted: unknown = typeof answer === 'string' ? answer : answer?.value;
    if (typeof redacted === 'string') return redacted;
    throw invalidArgument('redact must return the text, or an object with the text as value.');
  };
}

/** The user id that the server has verified: Genkit's context providers put it here. */
function verifiedUser({ auth }: ActionContext): string | undefined {
  const uid: unknown = auth?.['uid'];
  return typeof uid === 'string' && uid !== '' ? uid : undefined;
}

function logFailure({ type, refused, jobId, attempts, error }: MemoryReport): void {
  if (type === 'full') logger.warn(`The memory queue is full; ${refused} requests were refused so far.`);
  else if (type === 'dead') {
    const job = `Memory job ${quote(jobId!)}`;
    logger.warn(
      `${job} failed in each of its attempts (${attempts}); memory.jobs.replay tries it again, discard removes it. ${error}`,
    );
  }
}
