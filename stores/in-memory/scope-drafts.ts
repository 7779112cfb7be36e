import type { ScopeChange, ScopeRecord } from '../../src/store/contract.ts';
import { runScopeChange } from '../../src/store/scopes.ts';
import type { TenantData } from './tenant-data.ts';

/** A record that a save changes: what it was, and what it becomes. */
export interface ScopeDraft {
  readonly key: string;
  readonly current: ScopeRecord | undefined;
  readonly next: ScopeRecord;
}

/** Runs the changes of the records, without writing any; those that change nothing are left out. */
export function draftScopes(
  tenant: TenantData | undefined,
  changes: ReadonlyMap<string, ScopeChange>,
): readonly ScopeDraft[] {
  const drafts: ScopeDraft[] = [];
  for (const [key, change] of changes) {
    const current = tenant?.scope(key);
    const next = runScopeChange(change, current);
    if (next) drafts.push({ key, current, next });
  }
  return drafts;
}
