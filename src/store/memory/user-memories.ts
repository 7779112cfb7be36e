import type { ActionContext } from 'genkit';
import type { Unreadable } from '../contract.ts';
import type { MemoryErasure, MemoryScopeId } from './contract.ts';

/** The part of a memory manager that the calls for a user's rights use. */
export interface UserMemories<Scope extends object = object> {
  /** The scopes of the tenant of `context`, in all apps, that `filter` accepts, in the order in which it gets them. */
  listScopes(options: {
    filter: (scope: MemoryScopeId) => boolean;
    context?: ActionContext | undefined;
    onUnreadable?: (found: Unreadable[]) => void;
  }): Promise<Scope[]>;

  /** Everything in a scope, one object for each line of JSON. */
  export(options: { scope: Scope }): AsyncIterable<object>;

  /** The jobs and the quarantined texts of these sources in a scope. */
  exportWaiting(options: { scope: Scope; sources: readonly string[] }): AsyncIterable<object>;

  /** Removes it. */
  erase(options: { scope: Scope }): Promise<MemoryErasure>;

  /** Removes the jobs and the quarantined texts of these sources. Memories stay. */
  eraseWaiting(options: { scope: Scope; sources: readonly string[] }): Promise<void>;
}
