import { setImmediate as nextMacrotask } from 'node:timers/promises';
import type { MemorySource } from '../../../store/memory/contract.ts';
import { invalidArgument } from '../../../errors.ts';
import { NoAnswerError, withinTime } from '../../../store/parts/within-time.ts';
import type { Pipeline } from '../pipeline.ts';
import type { MemoryScope } from '../../scopes.ts';
import type { GuardedText, MemoryGuard } from '../../types.ts';
import type { JobInput } from '../records/job-input.ts';
import { poisonReason, poisonReasonOfSteps } from './poison.ts';

/** Personal data that no memory of an app may contain. */
const PERSONAL =
  /\b(?:the user|the customer|user's|customer's|he|she|his|her|hers|my|mr\.?|mrs\.?|ms\.?|dr\.?)\b|\S+@\S+\.\w+|\+?\d[\d ()/-]{7,}\d|\[[A-Z_]{3,}(?:_\d+)?\]/i;

/** Yields to other work after this many characters, because the rules take about 0.1 s for 20,000 characters of some languages. */
const MOST_AT_ONCE = 5_000;

/** Checks a text before it becomes a memory. Returns the reason if the text must wait for a decision. */
export type Guard = (
  text: string,
  kind: GuardedText['kind'],
  type: MemorySource['type'],
) => Promise<string | undefined>;

/**
 * Checks texts with the built-in rules, then with the application's guards. If a guard times out, all further texts are stopped without
 * asking a guard, so that a job waits only once.
 */
export function guardOf(
  { scope, signal }: { scope: MemoryScope; signal: AbortSignal },
  task: JobInput['task'],
  { guards, limits }: Pipeline,
): Guard {
  let timeout: NoAnswerError | undefined;
  let read = 0;
  return async (text, kind, type) => {
    read += text.length;
    if (read > MOST_AT_ONCE) {
      read = 0;
      await nextMacrotask();
    }
    const isSteps = task === 'procedure' && kind === 'memory';
    const poison = isSteps ? poisonReasonOfSteps(text) : poisonReason(text);
    if (poison !== undefined) return poison;
    if (scope.kind === 'app' && kind === 'memory' && PERSONAL.test(text)) {
      return 'It is about a person, and memories of an app are read by all users.';
    }
    try {
      for (const guard of timeout ? [] : guards) {
        const name = typeof guard === 'function' ? 'A guard' : guard.name;
        const ask = () => askGuard(guard, { text, kind, scope, type });
        const reason = await withinTime(name, limits.timeoutMs, signal, ask);
        if (reason !== undefined) return reason;
      }
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      timeout = error;
    }
    return timeout?.originalMessage;
  };
}

async function askGuard(guard: MemoryGuard, guarded: GuardedText): Promise<string | undefined> {
  if (typeof guard === 'function') {
    const reason: unknown = (await guard(guarded)) || undefined;
    if (reason === undefined || typeof reason === 'string') return reason;
    throw invalidArgument('A guard must return the reason as a text, or undefined.');
  }
  const matches = await guard.find(guarded.text, {});
  if (!Array.isArray(matches)) throw invalidArgument(`${guard.name}: find must return a list of { kind }.`);
  const [match] = matches;
  return match && `${guard.name} found ${match.kind}.`;
}
