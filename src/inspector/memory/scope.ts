import { failedPrecondition, invalidArgument, notFound, quote } from '../../errors.ts';
import type { MemoryManager } from '../../memory/manager.ts';
import { mint, type MemoryScope } from '../../memory/scopes.ts';
import type { Memory, MemoryScopeId, MemoryStore } from '../../store/memory/contract.ts';
import { memoryScopeKey } from '../../store/memory/scope.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';

/** The memories of the inspector. */
export interface Memories {
  readonly store: MemoryStore;
  readonly manager: MemoryManager | undefined;
}

/** @throws `FAILED_PRECONDITION` when the inspector has no memories. */
export function memoriesOf({ options: { memory } }: Source): Memories {
  if (!memory) throw failedPrecondition("The inspector was started without memories; the option 'memory' takes them.");
  return isManager(memory) ? { store: memory.store, manager: memory } : { store: memory, manager: undefined };
}

/** @throws `FAILED_PRECONDITION` when there is no manager. */
export function managerOf(source: Source): MemoryManager {
  const { manager } = memoriesOf(source);
  if (manager) return manager;
  throw failedPrecondition("This needs the memory manager: pass it as 'memory' in place of its store.");
}

export function isManager(memory: MemoryManager | MemoryStore): memory is MemoryManager {
  return 'quarantine' in memory;
}

/** @throws `INVALID_ARGUMENT` for a missing or invalid scope. */
export function scopeIn(params: Params): MemoryScopeId {
  const scope = params.json('scope') as MemoryScopeId;
  if (scope === undefined) throw invalidArgument('scope is missing.');
  memoryScopeKey(scope);
  return scope;
}

/** The scope in the manager's form. The page's developer may see all scopes. */
export function mintedScope({ caller }: Source, params: Params): MemoryScope {
  return mint(scopeIn(params), caller.context);
}

/** @throws `NOT_FOUND` */
export async function mustGetMemory(source: Source, params: Params): Promise<Memory> {
  const id = params.mustText('id');
  const [memory] = await memoriesOf(source).store.get(scopeIn(params), [id], source.caller);
  if (memory) return memory;
  throw notFound(`There is no memory ${quote(id)} in this scope.`);
}
