import type { ActionContext } from 'genkit';
import type { Unreadable } from '../contract.ts';
import type { MemoryErasure, MemoryScopeId } from './contract.ts';

/** The methods of a memory manager that `exportUser` and `eraseUser` use. */
export interface UserMemories<Scope extends object = object> {
  /** Lists the scopes of the tenant of `context`, in all apps, that `filter` accepts, in the order in which `filter` gets them. */
  listScopes(options: {
    filter: (scope: MemoryScopeId) => boolean;
    context?: ActionContext | undefined;
    onUnreadable?: (found: Unreadable[]) => void;
  }): Promise<Scope[]>;

  /** Exports all data of a scope, one object for each line of JSON. */
  export(options: { scope: Scope }): AsyncIterable<object>;

  /** Exports the jobs and the quarantined texts of these sources in a scope. */
  exportWaiting(options: { scope: Scope; sources: readonly string[] }): AsyncIterable<object>;

  /** Removes all data of a scope. */
  erase(options: { scope: Scope }): Promise<MemoryErasure>;

  /** Removes the jobs and the quarantined texts of these sources. Memories stay. */
  eraseWaiting(options: { scope: Scope; sources: readonly string[] }): Promise<void>;
}
