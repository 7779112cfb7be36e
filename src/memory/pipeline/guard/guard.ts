import type { MemorySource } from '../../../store/memory/contract.ts';
import type { MemoryScope } from '../../scopes.ts';
import type { GuardedText, MemoryGuard } from '../../types.ts';
import { poisonReason } from './poison.ts';

/** Personal matters that no memory of an app may have. */
const PERSONAL =
  /\b(?:the user|the customer|user's|customer's|he|she|his|her|hers|my|mr\.?|mrs\.?|ms\.?|dr\.?)\b|\S+@\S+\.\w+|\+?\d[\d ()/-]{7,}\d|\[[A-Z_]{3,}(?:_\d+)?\]/i;

/** Looks at a text before a memory is made of it; answers why it must wait for a decision. */
export type Guard = (
  text: string,
  kind: GuardedText['kind'],
  type: MemorySource['type'],
) => Promise<string | undefined>;

/** The built-in rules, then those of the application. */
export function guardOf(scope: MemoryScope, guards: readonly MemoryGuard[]): Guard {
  return async (text, kind, type) => {
    const poison = poisonReason(text);
    if (poison !== undefined) return poison;
    if (scope.kind === 'app' && kind === 'memory' && PERSONAL.test(text)) {
      return 'It is about a person, and memories of an app are read by all users.';
    }
    for (const guard of guards) {
      const reason = await askGuard(guard, { text, kind, scope, type });
      if (reason !== undefined) return reason;
    }
    return undefined;
  };
}

async function askGuard(guard: MemoryGuard, guarded: GuardedText): Promise<string | undefined> {
  if (typeof guard === 'function') return (await guard(guarded)) || undefined;
  const [match] = await guard.find(guarded.text, {});
  return match && `${guard.name} found ${match.kind}.`;
}
