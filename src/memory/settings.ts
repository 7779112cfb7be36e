import type { ActionContext } from 'genkit';
import { logger } from 'genkit/logging';
import { invalidArgument, quote } from '../errors.ts';
import { verifiedUser } from '../session/owner.ts';
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
import { notify } from '../store/parts/notify.ts';
import { redactor, type Redact } from './pipeline/guard/redact.ts';
import { isSchema, settleTopics } from './pipeline/extract/topics.ts';
import { withinTime } from '../store/parts/within-time.ts';
import type {
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

/** ISO 8601 writes dates after the year 9999 in another form, which does not sort with the others. */
const HUNDRED_YEARS_MS = 3_155_760_000_000;

const TRUST: Required<MemoryTrust> = { bootstrap: 0.95, explicit: 0.9, implicit: 0.6, tool: 0.3 };

const TRUST_CHECKS: Readonly<Record<keyof MemoryTrust, OptionCheck>> = {
  bootstrap: isShare,
  explicit: isShare,
  implicit: isShare,
  tool: isShare,
};

const TRIGGER_CHECKS: Readonly<Record<keyof MemoryTriggers, OptionCheck>> = {
  everyTurns: isWhole(1),
  onIdleMs: (value) => (value === false ? undefined : isTimerMs(1)(value)),
  onSessionEnd: isBoolean,
};

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

const OPTIONS: Readonly<Record<keyof MemoryManagerOptions, OptionCheck>> = {
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
};

const DEFAULTS = {
  guards: [],
  consent: 'on',
  learnFromTools: false,
  toolTtlMs: 3_600_000,
  app: false,
  appName: 'default',
  summary: false,
  worker: true,
  now: () => Date.now(),
  random: () => Math.random(),
} satisfies Partial<MemoryManagerOptions>;

type IsSuccess = NonNullable<MemoryManagerOptions['isSuccess']>;
type DefaultedOptions = Required<Pick<MemoryManagerOptions, keyof typeof DEFAULTS>>;

/** The options of a manager with their defaults. */
export interface MemorySettings
  extends
    Pick<MemoryManagerOptions, 'store' | 'model' | 'embedder' | 'extract' | 'profile' | 'isSuccess'>,
    DefaultedOptions {
  readonly topics: readonly MemoryTopic[];
  readonly redact: Redact;
  readonly trust: Required<MemoryTrust>;
  readonly limits: Required<MemoryLimits>;
  readonly triggers: Required<MemoryTriggers>;
  readonly userIdOf: (context: ActionContext) => string | undefined;
  /** Whether the application passed `userId`. */
  readonly hasUserId: boolean;
  readonly report: (report: MemoryReport) => void;
}

/**
 * Checks the options, and applies the defaults.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function settleManager(options: MemoryManagerOptions): MemorySettings {
  checkManagerOptions(options);
  const limits = withDefaults(LIMITS, options.limits);
  const { isSuccess } = options;
  return {
    ...options,
    ...withDefaults<DefaultedOptions>(DEFAULTS, options),
    topics: settleTopics(options.topics),
    redact: redactor(options.redact, limits.timeoutMs),
    trust: withDefaults(TRUST, options.trust),
    isSuccess: isSuccess && checkedIsSuccess(isSuccess, limits.timeoutMs),
    limits,
    report: reporter(options.onReport ?? logFailure),
    userIdOf: options.userId ?? verifiedUser,
    hasUserId: options.userId !== undefined,
    triggers: withDefaults(TRIGGERS, options.generate),
  };
}

/** Adds a time limit and a check of the result to the application's function. */
function checkedIsSuccess(isSuccess: IsSuccess, timeoutMs: number): IsSuccess {
  return async (session) => {
    const answer: unknown = await withinTime('isSuccess', timeoutMs, undefined, async () => isSuccess(session));
    if (typeof answer === 'boolean') return answer;
    throw invalidArgument('isSuccess must return true or false.');
  };
}

function reporter(onReport: (report: MemoryReport) => void): MemorySettings['report'] {
  return (report) => notify(() => onReport(report), 'onReport of memoryManager failed; the work continues.');
}

function checkManagerOptions(options: MemoryManagerOptions): void {
  checkOptions('memoryManager', options, OPTIONS);
  if (options?.store === undefined)
    throw invalidArgument('memoryManager needs a memory store, such as FileMemoryStore.');
  const { appName, trust, limits, generate, profile, model, extract, summary } = options;
  // The model omits members that it does not know, and for a new user it knows none.
  if (profile && !profile.safeParse({}).success) {
    throw invalidArgument(
      'memoryManager: profile: all members must be optional, because a new user has no data yet. Use z.object({...}).partial().',
    );
  }
  if (profile && model === undefined)
    throw invalidArgument('memoryManager: profile needs a model, which keeps it up to date.');
  if (summary && (model === undefined || extract !== undefined))
    throw invalidArgument(
      'memoryManager: summary needs a model and no extract option, because the model writes the summary when it extracts facts.',
    );
  if (appName !== undefined) assertId(appName, 'appName');
  checkOptions('memoryManager: trust', trust, TRUST_CHECKS);
  checkOptions('memoryManager: limits', limits, LIMIT_CHECKS);
  checkOptions('memoryManager: generate', generate, TRIGGER_CHECKS);
}

function logFailure({ type, refused, jobId, attempts, error }: MemoryReport): void {
  if (type === 'full') logger.warn(`The memory queue is full. Refused requests so far: ${refused}.`);
  else if (type === 'dead') {
    const job = `Memory job ${quote(jobId!)}`;
    logger.warn(
      `${job} is dead after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}. memory.jobs.replay tries it again, memory.jobs.discard removes it. ${error}`,
    );
  }
}
