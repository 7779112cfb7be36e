import type { Json } from '../../../json/value.ts';
import type { MemoryDraft, MemorySource } from '../../../store/memory/contract.ts';
import { MOST_STEPS, type ProcedureDraft } from './extract.ts';
import { sameFactKey } from '../../same-fact.ts';

/** Formats a procedure as one text. */
export function procedureText(task: string, steps: readonly string[]): string {
  return [`To ${task.replace(/^to /i, '')}:`, ...steps.map((step, i) => `${i + 1}. ${step}`)].join('\n');
}

/** Merges the steps of all sources into one procedure; `undefined` if a source has no steps, so that the procedure is only a text. */
export function procedureOf(sources: readonly MemorySource[]): Pick<MemoryDraft, 'text' | 'data'> | undefined {
  const drafts = sources.map(({ data }) => stepsOf(data));
  if (!drafts.every((draft) => draft !== undefined)) return undefined;
  const { task } = drafts[0]!;
  const steps = drafts.map((draft) => draft.steps).reduce(mergeSteps);
  return { text: procedureText(task, steps), data: { task, steps } };
}

/**
 * Merges two lists of steps in their order. A step that both contain in equal words appears once. If the result is too long for a
 * procedure, the lists have little in common, and only the later one remains.
 */
function mergeSteps(before: readonly string[], after: readonly string[]): string[] {
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
  return merged.length > MOST_STEPS ? [...after] : merged;
}

function stepsOf(data: Json | undefined): ProcedureDraft | undefined {
  const { task, steps } = (data ?? {}) as Partial<ProcedureDraft>;
  const isProcedure =
    typeof task === 'string' && Array.isArray(steps) && steps.every((step) => typeof step === 'string');
  return isProcedure ? { task, steps } : undefined;
}
