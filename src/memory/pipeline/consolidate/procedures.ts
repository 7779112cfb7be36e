import type { MemoryDraft } from '../../../store/memory/contract.ts';
import { sameFactKey } from './duplicates.ts';

/** A procedure as one text. */
export function procedureText(task: string, steps: readonly string[]): string {
  return [`To ${task.replace(/^to /i, '')}:`, ...steps.map((step, i) => `${i + 1}. ${step}`)].join('\n');
}

/** Merges two lists of steps in their order. A step that both have appears once. */
export function mergeSteps(before: readonly string[], after: readonly string[]): string[] {
  const a = before.map(sameFactKey);
  const b = after.map(sameFactKey);
  // The longest common subsequence of the suffixes.
  const common = Array.from({ length: a.length + 1 }, () => Array.from({ length: b.length + 1 }, () => 0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i]![j] = a[i] === b[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
    }
  }
  const merged: string[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      merged.push(before[i++]!);
      j++;
    } else if (j >= b.length || (i < a.length && common[i + 1]![j]! >= common[i]![j + 1]!)) merged.push(before[i++]!);
    else merged.push(after[j++]!);
  }
  return merged;
}

/** Counts a success or a failure. The confidence is the share of successes, with one success and one failure added. */
export function withOutcome(procedure: MemoryDraft, isSuccess: boolean): MemoryDraft {
  const countOf = (name: 'successes' | 'failures') => (procedure[name] as number | undefined) ?? 0;
  const successes = countOf('successes') + (isSuccess ? 1 : 0);
  const failures = countOf('failures') + (isSuccess ? 0 : 1);
  const counted = isSuccess ? { successes } : { failures };
  return { ...procedure, ...counted, confidence: (successes + 1) / (successes + failures + 2) };
}
