/** Memory stores that break exactly one rule of the contract. The suite must catch each of them. */
import type {
  Memory,
  MemoryCommitOptions,
  MemoryDraft,
  MemoryOperation,
  MemoryScopeId,
  MemoryStore,
} from '../../../../src/store/memory/contract.ts';
import { InMemoryMemoryStore } from '../../../../stores/in-memory/memory/in-memory-memory-store.ts';
import type { OpenMemoryOptions } from '../options.ts';
import { isoOf } from './drafts.ts';

type Faulty = Partial<MemoryStore> & { dump?: () => Promise<string> };

export interface MemoryMutant {
  /** What the store does wrong: "a store that …". */
  readonly fault: string;
  /** The subject that must catch it. */
  readonly subject: string;
  make(options: OpenMemoryOptions): MemoryStore & Pick<Faulty, 'dump'>;
}

/** @param change Returns the faulty methods, which replace those of the correct store. */
function mutant(fault: string, subject: string, change: (sound: MemoryStore) => Faulty): MemoryMutant {
  const make: MemoryMutant['make'] = (options) => {
    const sound = new InMemoryMemoryStore(options);
    const faulty = change(sound);
    return new Proxy(sound, {
      get(target, name) {
        const method: unknown = Reflect.get(faulty, name) ?? Reflect.get(target, name, target);
        return typeof method === 'function' ? method.bind(target) : method;
      },
    });
  };
  return { fault, subject, make };
}

function changedScope(fault: string, change: (text: string) => string): MemoryMutant {
  const same = (scope: MemoryScopeId): MemoryScopeId =>
    scope?.scope === 'session' && typeof scope.sessionId === 'string'
      ? { ...scope, sessionId: change(scope.sessionId) || 'x' }
      : scope;
  // A read memory names the requested scope, so only its content is wrong.
  const asked = (scope: MemoryScopeId, memories: readonly Memory[]): Memory[] =>
    memories.map((memory) => ({ ...memory, scope }));
  return mutant(fault, 'isolation', (sound) => ({
    get: async (scope, ...rest) => asked(scope, await sound.get(same(scope), ...rest)),
    commit: (scope, ...rest) => sound.commit(same(scope), ...rest),
    query: async (scope, ...rest) => {
      const { items, ...page } = await sound.query(same(scope), ...rest);
      return { ...page, items: items.map((hit) => ({ ...hit, memory: { ...hit.memory, scope } })) };
    },
    bySource: async (scope, ...rest) => asked(scope, await sound.bySource(same(scope), ...rest)),
    erase: (scope, ...rest) => sound.erase(same(scope), ...rest),
  }));
}

const put = (memory: MemoryDraft): MemoryOperation => ({ op: 'put', memory });
/** Returns a copy without a member. */
function without<T extends object>(value: T = {} as T, name: keyof T): T {
  const copy = { ...value };
  delete copy[name];
  return copy;
}

const noteOfNothing: MemoryOperation = { op: 'note', kind: 'index', key: 'nothing', value: undefined };
const isRemoval = (one: MemoryOperation): boolean => one?.op === 'remove';

/** A store whose medium keeps some of the removed data. `isKept` gets the number of the removal. */
function leaking(fault: string, isKept: (removal: number) => boolean): MemoryMutant {
  return mutant(fault, 'removal', (sound) => {
    const left: string[] = [];
    let removals = 0;
    return {
      async commit(scope, operations, options) {
        for (const one of operations)
          if (isRemoval(one) && isKept(removals++))
            left.push(JSON.stringify(await sound.get(scope, [(one as { id: string }).id])));
        return sound.commit(scope, operations, options);
      },
      dump: async () => left.join(),
    };
  });
}

export const MEMORY_MUTANTS: readonly MemoryMutant[] = [
  leaking('keeps the bytes of removed data', () => true),
  leaking('keeps the bytes of one of fifty removed memories', (removal) => removal % 50 === 49),
  mutant('lists a scope after an empty commit', 'commits', (sound) => ({
    commit: (scope, operations, options) =>
      sound.commit(scope, operations.length > 0 ? operations : [noteOfNothing], options),
  })),
  mutant('ignores `expectedRevision`', 'commits', (sound) => ({
    commit: (scope, operations, options) => sound.commit(scope, operations, without(options, 'expectedRevision')),
  })),
  mutant('commits one operation after the other', 'commits', (sound) => ({
    async commit(scope, operations, options) {
      let answer = { revision: await sound.revision(scope) };
      for (const operation of operations) answer = await sound.commit(scope, [operation], options);
      return answer;
    },
  })),
  mutant('reads and writes in two steps', 'commits', (sound) => ({
    async commit(scope, operations, { expectedRevision, ...rest } = {}) {
      const isRight = expectedRevision === undefined || expectedRevision === (await sound.revision(scope));
      await new Promise((resolve) => setImmediate(resolve));
      return sound.commit(scope, operations, isRight ? rest : { ...rest, expectedRevision });
    },
  })),
  mutant('raises the revision for derived notes', 'commits', (sound) => {
    let derived = 0;
    const raised = ({ revision }: { revision: number }): { revision: number } => ({ revision: revision + derived });
    return {
      revision: async (scope) => raised({ revision: await sound.revision(scope) }).revision,
      async commit(scope, operations, { expectedRevision, ...rest } = {}) {
        const expected = expectedRevision === undefined ? {} : { expectedRevision: expectedRevision - derived };
        const answer = await sound.commit(scope, operations, { ...rest, ...expected });
        if (operations.every((one) => one.op === 'note' && one.kind.startsWith('index'))) derived++;
        return raised(answer);
      },
    };
  }),
  mutant('ignores which worker holds a job', 'jobs', (sound) => ({
    async commit(scope, operations, options = {}) {
      const { items } = await sound.listJobs({ state: 'running' });
      const held = items.find(({ id }) => id === options.job?.id);
      return sound.commit(scope, operations, held ? { ...options, job: { id: held.id, owner: held.owner! } } : options);
    },
  })),
  mutant('leaves a job in the queue when its commit is made', 'jobs', (sound) => ({
    async commit(scope, operations, options = {}) {
      const { job, ...rest } = options;
      if (!job) return sound.commit(scope, operations, options);
      await sound.changeJob(job.id, { owner: job.owner, to: 'renew', leaseMs: 1000, now: 0 });
      return sound.commit(scope, operations, rest);
    },
  })),
  mutant('removes a job that a commit keeps', 'jobs', (sound) => ({
    commit: (scope, operations, { job, ...rest } = {}) =>
      sound.commit(scope, operations, { ...rest, ...(job && { job: without(job, 'keep') }) }),
  })),
  mutant('does not check the job when a commit keeps it', 'jobs', (sound) => ({
    commit: (scope, operations, { job, ...rest } = {}) =>
      sound.commit(scope, operations, { ...rest, ...(job && !job.keep && { job }) }),
  })),
  mutant('runs jobs of one scope in parallel', 'jobs', (sound) => {
    const scopes = new Map<string, MemoryScopeId>();
    return {
      addJob(job, options) {
        if (!scopes.has(job.id)) scopes.set(job.id, job.scope);
        return sound.addJob({ ...job, scope: { scope: 'app', appName: job.id } }, options);
      },
      async claimJob({ scope, ...options }) {
        const job = await sound.claimJob(options);
        return job && (scope === undefined || scopes.get(job.id) === scope)
          ? { ...job, scope: scopes.get(job.id)! }
          : undefined;
      },
      async listJobs(options) {
        const page = await sound.listJobs(options);
        return { ...page, items: page.items.map((job) => ({ ...job, scope: scopes.get(job.id)! })) };
      },
      async commit(scope, operations, { job, ...rest } = {}) {
        if (job) await sound.commit({ scope: 'app', appName: job.id }, [], { job });
        return sound.commit(scope, operations, rest);
      },
    };
  }),
  mutant('hands out jobs before their time', 'jobs', (sound) => ({
    claimJob: (options) => sound.claimJob({ ...options, now: (options.now ?? Date.now()) + 500 }),
  })),
  mutant('hands out a job of a scope that was not asked for', 'jobs', (sound) => ({
    claimJob: (options) => sound.claimJob(without(options, 'scope')),
  })),
  mutant('begins each page of its jobs at the first one', 'jobs', (sound) => ({
    listJobs: (options) => sound.listJobs(without(options, 'cursor')),
  })),
  mutant('counts the jobs before a page', 'jobs', (sound) => ({
    async listJobs({ cursor, limit = 100, ...options } = {}) {
      const all = (await sound.listJobs({ ...options, limit: 1000 })).items;
      const end = Number(cursor ?? 0) + limit;
      return { items: all.slice(end - limit, end), ...(end < all.length && { nextCursor: `${end}` }) };
    },
  })),
  mutant('does not count attempts', 'jobs', (sound) => ({
    async claimJob(options) {
      const job = await sound.claimJob(options);
      return job && { ...job, attempts: 1 };
    },
  })),
  mutant('adds a job again', 'jobs', (sound) => ({
    async addJob(job, options) {
      const answer = await sound.addJob(job, options);
      return answer === 'known' ? 'added' : answer;
    },
  })),
  mutant('counts dead jobs as waiting', 'jobs', (sound) => ({
    async addJob(job, options) {
      const { items } = await sound.listJobs({ state: 'dead' });
      return sound.addJob(job, { ...options, maxJobs: Math.max(0, options.maxJobs - items.length) });
    },
  })),
  mutant('writes the notes of a commit whose job is not held', 'jobs', (sound) => ({
    async commit(scope, operations, options) {
      const notes = operations.filter(({ op }) => op === 'note');
      if (options?.job && notes.length > 0) await sound.commit(scope, notes, without(options, 'job'));
      return sound.commit(scope, operations, options);
    },
  })),
  mutant('has an endless queue', 'jobs', (sound) => ({
    addJob: (job, options) => sound.addJob(job, { ...options, maxJobs: 1e6 }),
  })),
  mutant('forgets earlier revisions of a memory', 'memories', (sound) => ({
    revisions: async (...args) => (await sound.revisions(...args)).slice(-1),
  })),
  mutant('looks for a source in the last revision only', 'memories', (sound) => ({
    async bySource(scope, id, options) {
      const found = await sound.bySource(scope, id, options);
      return found.filter(({ sources }) => sources.some((source) => source.id === id));
    },
  })),
  mutant('loses when a memory was created', 'memories', (sound) => {
    const late = (memory: Memory): Memory => ({ ...memory, createdAt: memory.updatedAt });
    return { revisions: async (...args) => (await sound.revisions(...args)).map(late) };
  }),
  mutant('hands out its own memories', 'memories', (sound) => {
    const own = new Map<string, Memory[]>();
    return {
      async get(...args) {
        const found = own.get(JSON.stringify(args)) ?? structuredClone(await sound.get(...args));
        own.set(JSON.stringify(args), found);
        return found;
      },
      commit(...args) {
        own.clear();
        return sound.commit(...args);
      },
    };
  }),
  mutant('keeps the objects that were passed in', 'memories', (sound) => {
    const own = new Map<string, MemoryDraft>();
    return {
      async get(...args) {
        return (await sound.get(...args)).map((memory) => ({ ...memory, ...own.get(memory.id) }));
      },
      commit(scope, operations, options) {
        for (const one of operations) if (one.op === 'put') own.set(one.memory.id, one.memory);
        return sound.commit(scope, operations, options);
      },
    };
  }),
  mutant('loses members that it does not know', 'memories', (sound) => ({
    async get(...args) {
      return (await sound.get(...args)).map((memory) => without(memory, 'approvedAt'));
    },
  })),
  mutant('loses when a memory was last used', 'memories', (sound) => ({
    get: async (...args) => (await sound.get(...args)).map((memory) => without(memory, 'lastUsedAt')),
  })),
  mutant('returns the present for any `asOf`', 'queries', (sound) => ({
    query: (scope, query) => sound.query(scope, without(query, 'asOf')),
  })),
  mutant('lets `asOf` read slightly later data', 'queries', (sound) => ({
    query: (scope, query = {}) =>
      sound.query(scope, query.asOf === undefined ? query : { ...query, asOf: isoOf(Date.parse(query.asOf) + 500) }),
  })),
  mutant('finds memories that are no longer valid', 'queries', (sound) => ({
    query: (scope, query = {}) => sound.query(scope, { ...query, filter: { ...query.filter, includeInvalid: true } }),
  })),
  mutant('keeps the vector of a text that changed', 'queries', (sound) => {
    const vectors = new Map<string, readonly number[]>();
    const kept = (one: MemoryOperation): MemoryOperation => {
      if (one?.op !== 'put') return one;
      const vector = one.vector ?? vectors.get(one.memory?.id);
      if (one.vector) vectors.set(one.memory.id, one.vector);
      return vector ? { ...one, vector } : one;
    };
    return { commit: (scope, operations, options) => sound.commit(scope, operations.map(kept), options) };
  }),
  mutant('orders near memories by the time of their update', 'queries', (sound) => ({
    async query(scope, query) {
      const page = await sound.query(scope, query);
      return { ...page, items: page.items.toSorted((x, y) => (x.memory.id < y.memory.id ? -1 : 1)) };
    },
  })),
  ...(['data', 'schemaId', 'topics', 'kind', 'validFrom', 'supersededBy'] as const).map((name) =>
    mutant(`does not count a new ${name} as a change of content`, 'queries', (sound) => ({
      async changes(scope, options) {
        const answer = await sound.changes(scope, options);
        const isKept = async ({ id }: Memory): Promise<boolean> => {
          const [last, before] = (await sound.revisions(scope, id)).toReversed();
          return !before || JSON.stringify(last![name]) === JSON.stringify(before[name]);
        };
        const kept = await Promise.all(answer.changed.map(isKept));
        return { ...answer, changed: answer.changed.filter((_, i) => kept[i]) };
      },
    })),
  ),
  mutant('misses a change', 'queries', (sound) => ({
    async changes(...args) {
      const answer = await sound.changes(...args);
      return { ...answer, changed: answer.changed.length > 1 ? answer.changed.slice(1) : answer.changed };
    },
  })),
  mutant('counts a new confidence as a change of content', 'queries', (sound) => ({
    async changes(scope, options) {
      const answer = await sound.changes(scope, options);
      return answer.revision > options.since
        ? { ...answer, changed: (await sound.changes(scope, { since: 0 })).changed }
        : answer;
    },
  })),
  mutant('does not report that memories were removed', 'queries', (sound) => ({
    changes: async (...args) => ({ ...(await sound.changes(...args)), isReset: false }),
  })),
  mutant('returns notes in any order', 'notes', (sound) => ({
    async notes(...args) {
      const answer = await sound.notes(...args);
      return { ...answer, notes: answer.notes.toReversed() };
    },
  })),
  mutant('keeps derived notes when a memory is removed', 'notes', (sound) => ({
    async commit(scope, operations, options) {
      if (!operations.some(isRemoval)) return sound.commit(scope, operations, options);
      const { notes } = await sound.notes(scope, 'index');
      const answer = await sound.commit(scope, operations, options);
      await sound.commit(
        scope,
        notes.map((note) => ({ op: 'note', ...note })),
      );
      return answer;
    },
  })),
  mutant('keeps the revisions of a memory that one commit removes and puts', 'removal', (sound) => ({
    commit: (scope, operations, options) => {
      const isPut = (id: string) => operations.some((one) => one.op === 'put' && one.memory.id === id);
      return sound.commit(
        scope,
        operations.filter((one) => one.op !== 'remove' || !isPut(one.id)),
        options,
      );
    },
  })),
  mutant('keeps the revisions of a removed memory', 'removal', (sound) => {
    const kept = new Map<string, Memory[]>();
    return {
      async commit(scope, operations, options) {
        for (const one of operations) if (one.op === 'remove') kept.set(one.id, await sound.revisions(scope, one.id));
        return sound.commit(scope, operations, options);
      },
      revisions: async (scope, id) => [...(kept.get(id) ?? []), ...(await sound.revisions(scope, id))],
    };
  }),
  mutant('reads the memories of an erased scope until the erasure has ended', 'removal', (sound) => {
    const erasing = new Map<string, Memory[]>();
    return {
      async get(scope, ids, options) {
        const found = await sound.get(scope, ids, options);
        return [...found, ...(erasing.get(JSON.stringify(scope)) ?? [])];
      },
      async erase(scope, options) {
        const { items } = await sound.query(scope, { ...options, k: 1000 });
        const counts = await sound.erase(scope, options);
        erasing.set(
          JSON.stringify(scope),
          items.map(({ memory }) => memory),
        );
        await new Promise((resolve) => setTimeout(resolve, 20));
        erasing.delete(JSON.stringify(scope));
        return counts;
      },
    };
  }),
  mutant('begins at 0 after an erasure', 'removal', (sound) => {
    const erased = new Map<string, number>();
    const offset = (scope: MemoryScopeId): number => erased.get(JSON.stringify(scope)) ?? 0;
    return {
      revision: async (scope) => (await sound.revision(scope)) - offset(scope),
      async erase(scope) {
        const counts = await sound.erase(scope);
        erased.set(JSON.stringify(scope), await sound.revision(scope));
        return counts;
      },
      commit(scope, operations, { expectedRevision, ...rest }: MemoryCommitOptions = {}) {
        const expected = expectedRevision === undefined ? {} : { expectedRevision: expectedRevision + offset(scope) };
        return sound.commit(scope, operations, { ...rest, ...expected });
      },
    };
  }),
  mutant('does not erase a scope in which no memory was written', 'removal', (sound) => ({
    async erase(scope, options) {
      const isWritten = (await sound.revision(scope, options)) > 0;
      return isWritten ? sound.erase(scope, options) : { memories: 0, revisions: 0, notes: 0, jobs: 0 };
    },
  })),
  mutant('finds only valid memories by their source', 'removal', (sound) => ({
    async bySource(...call) {
      const found = await sound.bySource(...call);
      return found.filter(({ validTo, expiresAt }) => validTo === undefined && expiresAt === undefined);
    },
  })),
  mutant('treats sources as one if their ids differ only in case', 'removal', (sound) => ({
    async bySource(scope, sourceId, options) {
      const found = await sound.query(scope, { ...options, k: 1000, filter: { includeInvalid: true } });
      const isOf = ({ id }: { id: string }) => id.toLowerCase() === sourceId.toLowerCase();
      return found.items.flatMap(({ memory }) => (memory.sources.some(isOf) ? [memory] : []));
    },
  })),
  mutant('sweeps memories that no longer expire', 'removal', (sound) => ({
    async sweep(options) {
      const { now = Date.now() } = options ?? {};
      let { removed } = await sound.sweep(options);
      for (const scope of (await sound.listScopes()).items)
        for (const { memory } of (await sound.query(scope, { filter: { includeInvalid: true } })).items) {
          const was = await sound.revisions(scope, memory.id);
          if (!was.some(({ expiresAt }) => expiresAt !== undefined && Date.parse(expiresAt) <= now)) continue;
          await sound.commit(scope, [{ op: 'remove', id: memory.id }]);
          removed++;
        }
      return { removed };
    },
  })),
  mutant('leaves the jobs of an erased scope', 'removal', (sound) => ({
    async erase(scope) {
      const { items } = await sound.listJobs({ scope });
      const counts = await sound.erase(scope);
      for (const { id, input, sourceId } of items)
        await sound.addJob({ id, scope, input, sourceId }, { maxJobs: 1000 });
      return counts;
    },
  })),
  mutant('sweeps memories that have not expired yet', 'removal', (sound) => ({
    sweep: ({ now = Date.now() } = {}) => sound.sweep({ now: now + 1000 }),
  })),
  mutant('lists scopes that were erased', 'removal', (sound) => {
    const written = new Map<string, MemoryScopeId>();
    return {
      commit(scope, ...rest) {
        written.set(JSON.stringify(scope), scope);
        return sound.commit(scope, ...rest);
      },
      listScopes: async () => ({ items: [...written.values()] }),
    };
  }),
  changedScope('treats ids as equal if they differ only in case', (id) => id.toLowerCase()),
  changedScope('normalises ids', (id) => id.normalize('NFC')),
  changedScope('treats ids as paths', (id) => id.replaceAll(/\.\.?\//g, '')),
  changedScope('cuts long ids', (id) => id.slice(0, 255)),
  mutant('reads every scope of a user whose id is `*`', 'isolation', (sound) => ({
    async get(scope, ids, options) {
      const isAll = scope?.scope === 'session' && scope.sessionId === '*';
      const { items } = isAll ? await sound.listScopes({ limit: 1000 }) : { items: [scope] };
      const found = await Promise.all(items.map((one) => sound.get(one, ids, options)));
      return found.flat();
    },
  })),
  mutant('joins the ids of a scope into one text', 'isolation', (sound) => {
    const joined = (scope: MemoryScopeId): MemoryScopeId => {
      if (scope?.scope !== 'user') return scope;
      const [appName, ...userId] = `${scope.appName}:${scope.userId}`.split(':');
      return { scope: 'user', appName: appName || 'x', userId: userId.join(':') };
    };
    return {
      get: (scope, ...rest) => sound.get(joined(scope), ...rest),
      commit: (scope, ...rest) => sound.commit(joined(scope), ...rest),
    };
  }),
  mutant('hands out the jobs of another tenant', 'isolation', (sound) => {
    let context: object | undefined;
    return {
      addJob: (job, options) => {
        context ??= options.context;
        return sound.addJob(job, options);
      },
      claimJob: (options) => sound.claimJob({ ...options, ...(context && { context }) }),
    };
  }),
  mutant('has only one tenant', 'isolation', () => {
    const shared = new InMemoryMemoryStore();
    return {
      get: (scope, ids) => shared.get(scope, ids),
      commit: (scope, operations) => shared.commit(scope, operations),
    };
  }),
  mutant('accepts a memory without sources', 'refusals', (sound) => ({
    commit: (scope, operations, options) =>
      sound.commit(
        scope,
        operations.map((one) =>
          one?.op === 'put' && one.memory.sources?.length === 0
            ? put({ ...one.memory, sources: [{ id: 'x' } as never] })
            : one,
        ),
        options,
      ),
  })),
  mutant('writes to a scope without a user', 'refusals', (sound) => ({
    commit: (scope, ...rest) =>
      sound.commit(scope?.scope === 'user' && !scope.userId ? { ...scope, userId: 'all' } : scope, ...rest),
  })),
];
