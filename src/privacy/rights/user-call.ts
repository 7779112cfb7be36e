import { assertId } from '../../snapshot/ids.ts';
import type { PageOptions, ScopeId, ScopeStore, SessionStoreOptions } from '../../store/contract.ts';
import { isErasureRecord } from '../../store/records/erasure.ts';
import type { MemoryScopeId } from '../../store/memory/contract.ts';
import { checkOptions, isAny, isObject, type OptionCheck } from '../../store/check-options.ts';
import { itemsOf, type UnreadableItems } from '../../store/list/items-of.ts';
import type { UserMemories } from '../../store/memory/user-memories.ts';

export const isUserMemories: OptionCheck = (value) =>
  typeof (value as Partial<UserMemories> | null)?.eraseWaiting === 'function' ? undefined : 'a memory manager';

/** The scopes that `isOwn` accepts, and those of apps, in which texts that wait to be learned or approved may be a user's. Lists once for both. */
export async function memoryScopesOf(
  { memory, context }: SessionStoreOptions & { readonly memory?: UserMemories },
  isOwn: (scope: MemoryScopeId) => boolean,
  unreadable?: UnreadableItems,
): Promise<{ own: object[]; apps: object[] }> {
  const kinds: MemoryScopeId['scope'][] = [];
  const filter = (scope: MemoryScopeId): boolean => {
    const isIncluded = scope.scope === 'app' || isOwn(scope);
    if (isIncluded) kinds.push(scope.scope);
    return isIncluded;
  };
  const found = (await memory?.listScopes({ filter, context, onUnreadable: (items) => unreadable?.add(items) })) ?? [];
  const isOfApp = (_: object, i: number): boolean => kinds[i] === 'app';
  return { own: found.filter((one, i) => !isOfApp(one, i)), apps: found.filter(isOfApp) };
}

/** @throws `INVALID_ARGUMENT` for an unknown option, and for an invalid `userId`. */
export function checkUserCall(
  name: string,
  options: { readonly userId: string },
  checks: Readonly<Record<string, OptionCheck>>,
): void {
  checkOptions(name, options, { userId: isAny, context: isObject, ...checks });
  assertId(options?.userId, 'userId');
}

/** The user's records, of all apps. */
export async function* scopesOfUser(
  store: ScopeStore,
  { userId, context }: SessionStoreOptions & { readonly userId: string },
  unreadable: UnreadableItems,
): AsyncGenerator<ScopeId> {
  const list = (page: PageOptions) => store.listScopes(page);
  for await (const scope of itemsOf(list, { context, limit: 1000 }, unreadable)) {
    if (scope.scope === 'user' && scope.userId === userId && !isErasureRecord(scope)) yield scope;
  }
}
