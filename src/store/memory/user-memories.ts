import type { ActionContext } from 'genkit';
import type { MemoryErasure, MemoryScopeId } from './contract.ts';

/** What is remembered, as the calls for a user's rights see it: a memory manager is one. */
export interface UserMemories<Scope extends object = object> {
  /** The scopes of the tenant of `context`, in all apps, that `filter` accepts. */
  listScopes(options: {
    filter: (scope: MemoryScopeId) => boolean;
    context?: ActionContext | undefined;
  }): Promise<Scope[]>;

  /** Everything that is kept of a scope, as lines of JSON. */
  export(options: { scope: Scope }): AsyncIterable<object>;

  /** Removes it. */
  erase(options: { scope: Scope }): Promise<MemoryErasure>;
}
