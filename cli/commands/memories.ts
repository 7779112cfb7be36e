import { Option, type Command } from 'commander';
import type { Memory, MemoryErasure, MemoryJob, MemoryScope, MemoryScopeId } from 'genkitx-agents/memory';
import { Problem, WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { outOption, writeLines, type OutFlags } from '../output/lines.ts';
import { table } from '../output/table.ts';
import { brief, count, safe, time } from '../output/text.ts';
import { openMemories, type OpenMemories } from '../stores/open-memories.ts';
import { importMemory } from '../stores/packages.ts';
import { parseCount } from './numbers.ts';
import { isConfirmed, removingCommand, type RemovingFlags } from './removing.ts';
import { closing, itemsOf, printJson, storeCommand, type StoreFlags } from './with-store.ts';

interface ScopeFlags extends StoreFlags {
  readonly app?: string;
  readonly user?: string;
  readonly session?: string;
}

interface ListFlags extends ScopeFlags {
  readonly all?: boolean;
  readonly asOf?: string;
  readonly limit: number;
}

interface JobFlags extends StoreFlags {
  readonly state?: MemoryJob['state'];
}

/** Time limit of a search, in ms. Long, because a new process has to read the index first. */
const SEARCH_MS = 60_000;
/** The most memories that a search returns. */
const MOST_FOUND = 50;

/** `memories ...` */
export function addMemories(program: Command, io: Io): void {
  const memories = program.command('memories').description('looks at long-term memories, and removes them');
  const on = <T>(flags: StoreFlags, work: (open: OpenMemories) => Promise<T>): Promise<T> =>
    withMemories(io, flags, work);

  scoped(
    storeCommand(memories, 'list', 'the memories of a scope, the one updated last first; without --app the scopes'),
  )
    .option('--all', 'also those that do not hold any more')
    .option('--as-of <time>', 'as the scope was then (ISO 8601)')
    .option('-n, --limit <count>', 'at most so many', parseCount, 50)
    .action(async (flags: ListFlags) => {
      if (flags.app === undefined) assertNoOwner(flags);
      await on(flags, (open) => (flags.app === undefined ? listScopes(io, flags, open) : list(io, flags, open)));
    });

  scoped(
    storeCommand(memories, 'search <query>', 'the memories of a scope that fit a text, with the parts of their scores'),
  )
    .option('-n, --limit <count>', `at most so many, up to ${MOST_FOUND}`, parseCount, 10)
    .action(async (query: string, flags: ListFlags) => {
      if (flags.limit > MOST_FOUND) throw new WrongUse(`--limit of a search is 1 to ${MOST_FOUND}.`);
      await on(flags, async ({ manager, caller }) => {
        const scope = await mustScope(flags, caller);
        const { memories: found, report } = await manager.search({
          scope,
          query,
          k: flags.limit,
          deadlineMs: SEARCH_MS,
        });
        if (report.errors.length > 0) throw new Problem(`The search failed. ${report.errors.join(' ')}`);
        if (report.deadlinePassed) throw new Problem(`The search took longer than ${SEARCH_MS / 1000} s.`);
        if (flags.json) for (const one of found) await printJson(io, one);
        else if (found.length === 0) await io.print('No memories.\n');
        else {
          const part = (value: number | undefined): string => value?.toFixed(2) ?? '';
          await io.print(
            table(found, [
              { name: 'score', of: ({ score }) => part(score) },
              { name: 'relevance', of: ({ parts }) => part(parts.relevance) },
              { name: 'recency', of: ({ parts }) => part(parts.recency) },
              { name: 'importance', of: ({ parts }) => part(parts.importance) },
              { name: 'confidence', of: ({ parts }) => part(parts.confidence) },
              { name: 'id', of: ({ memory }) => memory.id },
              { name: 'text', of: ({ memory }) => memory.text },
            ]),
          );
        }
      });
    });

  scoped(storeCommand(memories, 'show <id>', 'a memory with its sources, and what it was before')).action(
    (id: string, flags: ScopeFlags) =>
      on(flags, async ({ manager, caller }) => {
        const scope = scopeIdOf(flags);
        const [memory] = await manager.store.get(scope, [id], caller);
        if (!memory) throw new Problem(`The scope has no memory '${id}'. 'memories list' shows those it has.`);
        const revisions = await manager.store.revisions(scope, id, caller);
        if (flags.json) await printJson(io, { memory, revisions });
        else for (const line of memoryLines(memory, revisions)) await io.print(`${line}\n`);
      }),
  );

  storeCommand(memories, 'jobs', 'what waits to be learned from, runs, or has failed for good')
    .addOption(new Option('--state <state>', 'only these').choices(['waiting', 'running', 'dead']))
    .action((flags: JobFlags) =>
      on(flags, async ({ manager, caller }) => {
        const jobs = await manager.jobs.list({ ...caller, ...(flags.state && { state: flags.state }) });
        if (flags.json) for (const job of jobs) await printJson(io, job);
        else await io.print(jobs.length === 0 ? 'No jobs.\n' : jobTable(jobs));
      }),
    );

  storeCommand(memories, 'replay <job...>', 'tries dead jobs again; a worker of the application takes them').action(
    (ids: readonly string[], flags: StoreFlags) =>
      on(flags, async ({ manager, caller }) => {
        for (const id of ids) await manager.jobs.replay(id, caller);
        io.say(`Waiting again: ${count(ids.length, 'job')}`);
      }),
  );

  removingCommand(memories, 'discard <job...>', 'removes dead jobs; their messages are not learned later').action(
    (given: readonly string[], flags: RemovingFlags) =>
      on(flags, async ({ manager, caller }) => {
        const ids = [...new Set(given)];
        const dead = await manager.jobs.list({ ...caller, state: 'dead' });
        const unknown = ids.find((id) => dead.every((job) => job.id !== id));
        if (unknown !== undefined)
          throw new Problem(`There is no dead job '${unknown}'. 'memories jobs --state dead' shows them.`);
        const jobs = ids.length;
        const what = count(jobs, 'job');
        if (flags.dryRun && flags.json) return printJson(io, { dryRun: true, removed: { jobs } });
        if (flags.dryRun) return io.print(`Would remove: ${what}\n`);
        if (!(await isConfirmed(io, flags, `${what} will be removed for good; the messages will not be learned.`)))
          return;
        for (const id of ids) await manager.jobs.discard(id, caller);
        if (flags.json) await printJson(io, { jobs });
        else await io.print(`Removed: ${what}\n`);
      }),
  );

  scoped(storeCommand(memories, 'export', 'everything that is known of a scope, as JSON Lines'))
    .addOption(outOption())
    .action((flags: ScopeFlags & OutFlags) =>
      on(flags, async ({ manager, caller }) => {
        const lines = manager.export({ scope: await mustScope(flags, caller) });
        // A memory that changes meanwhile has several lines.
        const ids = new Set<string>();
        const shown = async function* (): AsyncGenerator<string> {
          for await (const line of lines) {
            if (line.memory) ids.add(line.memory.id);
            yield `${JSON.stringify(line)}\n`;
          }
        };
        await writeLines(io, flags, shown());
        io.say(`Exported: ${countMemories(ids.size)}`);
      }),
    );

  scoped(removingCommand(memories, 'erase', 'removes everything that is known of a scope')).action(
    (flags: ScopeFlags & RemovingFlags) =>
      on(flags, async ({ manager, knowsSessions, caller }) => {
        const id = scopeIdOf(flags);
        const scope = await mustScope(flags, caller);
        const counted = async (): Promise<number> => {
          let memories = 0;
          for await (const _ of itemsOf((page) => manager.list({ scope, includeInvalid: true, ...page }))) memories++;
          return memories;
        };
        if (flags.dryRun) {
          const memories = await counted();
          if (flags.json) return printJson(io, { dryRun: true, removed: { memories } });
          return io.print(`Would remove: ${countMemories(memories)}, and all that belongs to the scope\n`);
        }
        if (!flags.yes && !(await isConfirmed(io, flags, await describeLoss(id, counted())))) return;
        const erased = await manager.erase({ scope });
        if (flags.json) await printJson(io, erased);
        else await io.print(`Removed: ${describeErasure(erased)}\n`);
        if (!knowsSessions)
          io.say(
            "The sessions that it was learned from do not count as read: one that goes on is learned from again. Remove them as well, or erase again with the manager of your application's module as --store.",
          );
      }),
  );
}

async function withMemories<T>(io: Io, flags: StoreFlags, work: (open: OpenMemories) => Promise<T>): Promise<T> {
  const open = await openMemories(flags, io);
  return closing(io, [open], () => work(open));
}

function scoped(command: Command): Command {
  return command
    .option('--app <name>', "the application's name")
    .option('--user <id>', 'the scope of this user of it')
    .option('--session <id>', 'the scope of this session of it');
}

/** @throws WrongUse without `--app`, or with both a user and a session. */
function scopeIdOf({ app: appName, user: userId, session: sessionId }: ScopeFlags): MemoryScopeId {
  if (appName === undefined) throw new WrongUse('Name the scope: --app, and --user or --session for theirs.');
  if (userId !== undefined && sessionId !== undefined)
    throw new WrongUse('A scope is of a user or of a session, not of both.');
  if (userId !== undefined) return { scope: 'user', appName, userId };
  return sessionId === undefined ? { scope: 'app', appName } : { scope: 'session', appName, sessionId };
}

async function mustScope(flags: ScopeFlags, caller: OpenMemories['caller']): Promise<MemoryScope> {
  const id = scopeIdOf(flags);
  const { memoryScope } = await importMemory();
  return memoryScope(id, caller.context);
}

function describeScope(id: MemoryScopeId): string {
  if (id.scope === 'app') return `app '${id.appName}'`;
  return id.scope === 'user'
    ? `user '${id.userId}' of app '${id.appName}'`
    : `session '${id.sessionId}' of app '${id.appName}'`;
}

/** @throws WrongUse with `--user` or `--session`: without `--app` they would be ignored. */
function assertNoOwner({ user, session }: ScopeFlags): void {
  const flag = user === undefined ? '--session' : '--user';
  if ((user ?? session) !== undefined) throw new WrongUse(`${flag} needs --app: it names the scope's app.`);
}

/** @throws The error of the count, unless the memories can't be read: erasing needs no key, counting does. */
async function describeLoss(id: MemoryScopeId, counted: Promise<number>): Promise<string> {
  const of = `of ${describeScope(id)} will be removed for good.`;
  try {
    return `${countMemories(await counted)} ${of}`;
  } catch (error) {
    if ((error as { status?: unknown }).status !== 'FAILED_PRECONDITION') throw error;
    return `All memories ${of} How many there are is not known, because they can't be read.`;
  }
}

function countMemories(memories: number): string {
  return memories === 1 ? '1 memory' : `${memories.toLocaleString('en')} memories`;
}

function describeErasure({ memories, revisions, notes, jobs }: MemoryErasure): string {
  return [countMemories(memories), count(revisions, 'revision'), count(notes, 'note'), count(jobs, 'job')].join(', ');
}

async function listScopes(io: Io, { json }: ListFlags, { manager, caller }: OpenMemories): Promise<void> {
  const scopes: MemoryScopeId[] = [];
  for await (const scope of itemsOf((page) => manager.store.listScopes({ ...caller, ...page }))) {
    if (json) await printJson(io, scope);
    scopes.push(scope);
  }
  if (json) return;
  if (scopes.length === 0) return io.print('No memories.\n');
  await io.print(
    table(scopes, [
      { name: 'app', of: ({ appName }) => appName },
      { name: 'user', of: (id) => (id.scope === 'user' ? id.userId : undefined) },
      { name: 'session', of: (id) => (id.scope === 'session' ? id.sessionId : undefined) },
    ]),
  );
}

async function list(io: Io, flags: ListFlags, { manager, caller }: OpenMemories): Promise<void> {
  const { limit, asOf, all, json } = flags;
  const query = { ...caller, ...(asOf !== undefined && { asOf }), ...(all && { filter: { includeInvalid: true } }) };
  const found: Memory[] = [];
  let hasMore = false;
  for await (const { memory } of itemsOf(({ limit: most, cursor }) =>
    manager.store.query(scopeIdOf(flags), {
      ...query,
      k: Math.min(limit + 1, most),
      ...(cursor !== undefined && { cursor }),
    }),
  )) {
    hasMore = found.length === limit;
    if (hasMore) break;
    found.push(memory);
    if (json) await printJson(io, memory);
  }
  if (!json)
    await io.print(
      found.length === 0
        ? "No memories to show; 'memories list' without --app shows the scopes.\n"
        : memoryTable(found),
    );
  if (hasMore) io.say(`There are more; --limit says how many to show (now ${limit}).`);
}

function memoryTable(memories: readonly Memory[]): string {
  return table(memories, [
    { name: 'id', of: ({ id }) => id },
    { name: 'confidence', of: ({ confidence }) => confidence.toFixed(2) },
    { name: 'updated (UTC)', of: ({ updatedAt }) => time(updatedAt) },
    { name: 'held until', of: ({ validTo }) => time(validTo) },
    { name: 'topics', of: ({ topics }) => topics.join(', ') },
    { name: 'text', of: ({ text }) => text },
  ]);
}

function* memoryLines(memory: Memory, revisions: readonly Memory[]): Generator<string> {
  const { id, kind, text, data, confidence, importance, topics, validFrom, validTo, supersededBy, sources } = memory;
  yield safe(text);
  if (data !== undefined) yield `data: ${brief(data, 500)}`;
  yield safe(
    `${id} · ${kind} · confidence ${confidence.toFixed(2)} · importance ${importance.toFixed(2)} · ${topics.join(', ')}`,
  );
  const end =
    validTo === undefined
      ? ''
      : ` until ${time(validTo)}${supersededBy === undefined ? '' : `, replaced by ${safe(supersededBy)}`}`;
  yield `holds from ${time(validFrom)}${end}`;
  yield* ['', 'sources'];
  for (const { id: source, type, trust, statement, sessionId, snapshotId, from, to, at } of sources) {
    const messages = from === undefined ? '' : `, messages ${from} to ${(to ?? from + 1) - 1}`;
    const place =
      sessionId === undefined
        ? ''
        : ` · session ${sessionId}${snapshotId === undefined ? '' : `, snapshot ${snapshotId}`}${messages}`;
    yield `  ${safe(`${time(at)} · ${source} · ${type}, trust ${trust}${place}`)}`;
    yield `    ${safe(statement)}`;
  }
  yield* ['', 'revisions'];
  for (const one of revisions)
    yield `  ${one.revision}  ${time(one.updatedAt)}  ${one.confidence.toFixed(2)}  ${safe(one.text)}`;
}

function jobTable(jobs: readonly MemoryJob[]): string {
  return table(jobs, [
    { name: 'job', of: ({ id }) => id },
    { name: 'state', of: ({ state }) => state },
    { name: 'attempts', of: ({ attempts }) => attempts },
    { name: 'scope', of: ({ scope }) => describeScope(scope) },
    { name: 'source', of: ({ sourceId }) => sourceId },
    { name: 'due (UTC)', of: ({ dueAt }) => time(dueAt) },
    { name: 'error', of: ({ error }) => error },
  ]);
}
