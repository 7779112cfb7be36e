import { unavailable } from '../../errors.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import { checkMatches, isPromise } from '../rules/find.ts';
import type { PrivacyRule, RuleMatch } from '../rules/types.ts';
import type { RedactingSettings } from './options.ts';

/** The error of a rule, with the rule's name. */
class RuleFailure extends Error {
  constructor(
    readonly rule: string,
    override readonly cause: unknown,
  ) {
    super(`The privacy rule '${rule}' failed.`);
  }
}

/** The rule that is waited for, by the signal that limits its time. */
const waiting = new WeakMap<AbortSignal, string>();

/** Wraps a rule so that the error names it when it fails, takes too long, or returns anything but matches. */
export function namingErrors(rule: PrivacyRule): PrivacyRule {
  const fail = (error: unknown): never => {
    throw new RuleFailure(rule.name, error);
  };
  return {
    name: rule.name,
    maxLength: rule.maxLength,
    find: (text, options) => {
      const check = (matches: readonly RuleMatch[]) => checkMatches(matches, text, rule);
      try {
        const answer = rule.find(text, options);
        if (!isPromise(answer)) return check(answer);
        const { signal } = options;
        if (signal) waiting.set(signal, rule.name);
        return answer
          .finally(() => signal && waiting.delete(signal))
          .then(check)
          .catch(fail);
      } catch (error) {
        return fail(error);
      }
    },
  };
}

/**
 * Runs the rules, at most until the signal aborts. Returns `undefined` if they fail and `onFailure` is `write`.
 *
 * @param place The place that they search, for the error.
 * @throws `UNAVAILABLE` when they fail. The error of a rule may quote a text, so it is the `cause` and not in the message.
 */
export async function runRules<T>(
  { onFailure }: Pick<RedactingSettings, 'onFailure'>,
  place: string,
  signal: AbortSignal,
  run: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await withinTime('The rules', undefined, signal, run);
  } catch (error) {
    if (onFailure === 'write') return undefined;
    const failure = error instanceof RuleFailure ? error : undefined;
    const slow = signal.aborted ? waiting.get(signal) : undefined;
    const late = slow === undefined ? 'privacy rules failed or took too long' : `privacy rule '${slow}' took too long`;
    const what = failure ? `privacy rule '${failure.rule}' failed` : late;
    throw unavailable(
      `The ${what} on ${place}, so nothing was written. Try again, or set onFailure: 'write' to save unsearched text.`,
      failure ? failure.cause : error,
    );
  }
}
