import type { GenerationUsage } from 'genkit';

/** Usage of model calls that is in no snapshot yet, by session. */
const unsaved = new WeakMap<object, GenerationUsage>();

/**
 * Adds up the numeric members of usages. Omits `custom`, whose members only its model can add.
 *
 * @returns `undefined` when there are no numbers.
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

/** Adds the usage of a model call of the running turn. */
export function addUsage(session: object, usage: GenerationUsage | undefined): void {
  const sum = sumUsage(unsaved.get(session), usage);
  if (sum) unsaved.set(session, sum);
}

/** The usage since the last snapshot. */
export function usageOf(session: object): GenerationUsage | undefined {
  return unsaved.get(session);
}

/** The field `usage` of a snapshot. Missing when no model call reported any. */
export interface UsageField {
  readonly usage?: GenerationUsage;
}

/** Same as {@link usageOf}, and resets it after the snapshot that is written now. */
export function takeUsage(session: object): UsageField {
  const usage = unsaved.get(session);
  unsaved.delete(session);
  return usage ? { usage } : {};
}
