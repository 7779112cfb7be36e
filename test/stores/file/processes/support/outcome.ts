import { GenkitError } from 'genkit';
import { SessionConflictError } from '../../../../../src/errors.ts';

/** How a save ended, as plain data. */
export type Outcome =
  | { readonly kind: 'saved'; readonly id: string | null }
  | { readonly kind: 'conflict'; readonly actual: string | null }
  | { readonly kind: 'refused'; readonly status: string; readonly message: string };

/** Throws an unexpected error again. */
export async function outcomeOf(save: Promise<string | null>): Promise<Outcome> {
  try {
    return { kind: 'saved', id: await save };
  } catch (error) {
    if (SessionConflictError.isInstance(error)) return { kind: 'conflict', actual: error.actualLeafId };
    if (error instanceof GenkitError) return { kind: 'refused', status: error.status, message: error.message };
    throw error;
  }
}
