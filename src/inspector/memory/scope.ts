import { failedPrecondition, invalidArgument, notFound, quote } from '../../errors.ts';
import type { MemoryManager } from '../../memory/manager.ts';
import { memoryScope, type MemoryScope } from '../../memory/scopes.ts';
import type { Memory, MemoryScopeId } from '../../store/memory/contract.ts';
import { memoryScopeKey } from '../../store/memory/scope.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';

/** @throws `FAILED_PRECONDITION` when the inspector has no memories. */
export function managerOf({ options: { memory } }: Source): MemoryManager {
  if (memory) return memory;
  throw failedPrecondition("The inspector has no memories. Pass a memory manager in the option 'memory'.");
}

/** @throws `INVALID_ARGUMENT` for a missing or invalid scope. */
export function scopeIn(params: Params): MemoryScopeId {
  const scope = params.json('scope') as MemoryScopeId;
  if (scope === undefined) throw invalidArgument('scope is missing.');
  memoryScopeKey(scope);
  return scope;
}

/** The scope in the manager's form. The page's developer may see all scopes. */
export function managerScope({ caller }: Source, params: Params): MemoryScope {
  return memoryScope(scopeIn(params), caller.context);
}

/** @throws `NOT_FOUND` */
export async function mustGetMemory(source: Source, params: Params): Promise<Memory> {
  const id = params.mustText('id');
  const [memory] = await managerOf(source).store.get(scopeIn(params), [id], source.caller);
  if (memory) return memory;
  throw notFound(`There is no memory ${quote(id)} in this scope.`);
}
