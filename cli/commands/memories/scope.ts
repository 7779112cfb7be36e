import type { Command } from 'commander';
import type { MemoryScope, MemoryScopeId } from 'genkitx-agents/memory';
import { WrongUse } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { openMemories, type OpenMemories } from '../../stores/open-memories.ts';
import { importMemory } from '../../stores/packages.ts';
import { closing, type StoreFlags } from '../with-store.ts';

/** Options of a command that works on a scope. */
export interface ScopeFlags extends StoreFlags {
  readonly app?: string;
  readonly user?: string;
  readonly session?: string;
}

/** Opens a command's memories, runs the work, and closes them. */
export async function withMemories<T>(io: Io, flags: StoreFlags, work: (open: OpenMemories) => Promise<T>): Promise<T> {
  const open = await openMemories(flags, io);
  return closing(io, [open], () => work(open));
}

/** Adds the options that name a scope. */
export function scoped(command: Command): Command {
  return command
    .option('--app <name>', "the application's name")
    .option('--user <id>', 'the scope of this user of the application')
    .option('--session <id>', 'the scope of this session of the application');
}

/** @throws WrongUse with `--user` or `--session` but without `--app`: they would be ignored. */
export function assertNoOwner({ app, user, session }: ScopeFlags): void {
  const flag = user === undefined ? '--session' : '--user';
  if (app === undefined && (user ?? session) !== undefined)
    throw new WrongUse(`${flag} needs --app, the application of the scope.`);
}

/** @throws WrongUse without `--app`, or with both a user and a session. */
export function scopeIdOf({ app: appName, user: userId, session: sessionId }: ScopeFlags): MemoryScopeId {
  if (appName === undefined) throw new WrongUse('Name the scope: --app, and --user or --session for the scope of one.');
  if (userId !== undefined && sessionId !== undefined)
    throw new WrongUse('A scope belongs to a user or to a session. Pass --user or --session, not both.');
  if (userId !== undefined) return { scope: 'user', appName, userId };
  return sessionId === undefined ? { scope: 'app', appName } : { scope: 'session', appName, sessionId };
}

/** @throws WrongUse as {@link scopeIdOf}. */
export async function mustScope(flags: ScopeFlags, { caller }: OpenMemories): Promise<MemoryScope> {
  const id = scopeIdOf(flags);
  const { memoryScope } = await importMemory();
  return memoryScope(id, caller.context);
}

export function describeScope(id: MemoryScopeId): string {
  if (id.scope === 'app') return `app '${id.appName}'`;
  const owner = id.scope === 'user' ? `user '${id.userId}'` : `session '${id.sessionId}'`;
  return `${owner} of app '${id.appName}'`;
}
