import type { GenerationUsage } from 'genkit';

/** What model calls used that no snapshot has yet, by session. */
const unsaved = new WeakMap<object, GenerationUsage>();

/**
 * Adds up the numeric members of usages. Leaves out `custom`, whose members only its model knows how to add.
 *
 * @returns `undefined` when there is no number.
 */
export function sumUsage(...usages: readonly (GenerationUsage | undefined)[]): GenerationUsage | undefined {
  const sum = new Map<string, number>();
  for (const usage of usages) {
    for (const [name, value] of Object.entries(usage ?? {})) {
      if (typeof value === 'number' && Number.isFinite(value)) sum.set(name, (sum.get(name) ?? 0) + value);
    }
  }
  return sum.size > 0 ? Object.fromEntries(sum) : undefined;
}

/** A model call of the running turn used this. */
export function addUsage(session: object, usage: GenerationUsage | undefined): void {
  const sum = sumUsage(unsaved.get(session), usage);
  if (sum) unsaved.set(session, sum);
}

/** The usage since the last snapshot. */
export function usageOf(session: object): GenerationUsage | undefined {
  return unsaved.get(session);
}

/** The field `usage` of a snapshot; absent when no model call reported any. */
export interface UsageField {
  readonly usage?: GenerationUsage;
}

/** {@link usageOf}, for the snapshot that is written now: the next one starts from nothing. */
export function takeUsage(session: object): UsageField {
  const usage = unsaved.get(session);
  unsaved.delete(session);
  return usage ? { usage } : {};
}
