import { FileSessionStore, type FileSessionStoreOptions } from '../../../../stores/file/file-session-store.ts';
import type { FileSystem } from '../../../../stores/file/disk/file-system.ts';
import type {
  ScopeChange,
  ScopeId,
  SessionSnapshot,
  SessionSnapshotInput,
  SnapshotStatus,
} from '../../../../src/store/contract.ts';

export interface State {
  messages?: { role: 'user' | 'model'; content: { text: string }[] }[];
  custom?: { turn: number; filler?: string[] };
}

export type Store = FileSessionStore<State['custom']>;

export const SESSION = 'a-session';

/** Records that scenarios change. */
export const APP: ScopeId = { scope: 'app', appName: 'shop' };
export const ADA: ScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };

/** Adds one to `n` of a record. */
export function adding(id: ScopeId): ScopeChange {
  return { id, change: (record) => ({ ...record, n: Number(record['n'] ?? 0) + 1 }) };
}

/** One operation on a store with earlier data. */
export interface Scenario {
  readonly name: string;
  readonly options?: FileSessionStoreOptions;
  /** Creates the earlier data. */
  before(store: Store, folder: string): Promise<void>;
  /** The operation. */
  operate(store: Store): Promise<unknown>;
}

export function openStore(folder: string, options: FileSessionStoreOptions = {}, fileSystem?: FileSystem): Store {
  return new FileSessionStore(folder, { checkpointInterval: 3, lockTimeoutMs: 1000, ...options }, fileSystem);
}

/** A state of some turns: large enough for shards where `wide`. */
export function stateOf(turn: number, wide = false): SessionSnapshot<State['custom']>['state'] {
  const filler = wide ? Array.from({ length: 30 + turn }, (_, i) => `${i} `.repeat(200)) : undefined;
  return {
    messages: Array.from({ length: turn }, (_, i) => ({ role: 'user' as const, content: [{ text: `message ${i}` }] })),
    custom: { turn, ...(filler && { filler }) },
  };
}

/** Saves a snapshot `t<turn>` below the one before it. */
export async function saveTurn(
  store: Store,
  turn: number,
  options: { parent?: string; wide?: boolean; scopes?: readonly ScopeChange[]; status?: SnapshotStatus } = {},
): Promise<void> {
  const parentId = options.parent ?? (turn > 1 ? `t${turn - 1}` : undefined);
  const save = (): SessionSnapshotInput<State['custom']> => ({
    sessionId: SESSION,
    createdAt: `2026-01-01T00:00:${String(turn % 60).padStart(2, '0')}.000Z`,
    status: options.status ?? 'completed',
    ...(parentId !== undefined && { parentId }),
    state: stateOf(turn, options.wide),
  });
  await store.saveSnapshot(`t${turn}`, save, { ...(options.scopes && { scopes: options.scopes }) });
}

export async function saveTurns(store: Store, count: number, wide = false): Promise<void> {
  for (let turn = 1; turn <= count; turn++) await saveTurn(store, turn, { wide });
}

/** Writes a record of the session. */
async function writeSummary(store: Store, value: string): Promise<void> {
  await store.writeRecord({ sessionId: SESSION, kind: 'summary', key: 'latest', value });
}

async function touch(store: Store, id: string, times = 1): Promise<void> {
  for (let i = 0; i < times; i++) {
    await store.saveSnapshot(id, (current) => ({
      ...current!,
      updatedAt: `2026-02-01T00:00:00.${String(i).padStart(3, '0')}Z`,
    }));
  }
}

export const SCENARIOS: readonly Scenario[] = [
  { name: 'the first save of all', before: async () => {}, operate: (store) => saveTurn(store, 1) },
  { name: 'a save of what changed', before: (store) => saveTurns(store, 4), operate: (store) => saveTurn(store, 5) },
  {
    name: 'a checkpoint with shards',
    before: (store) => saveTurns(store, 3, true),
    operate: (store) => saveTurn(store, 4, { wide: true }),
  },
  {
    name: 'a branch',
    before: (store) => saveTurns(store, 4),
    operate: (store) => saveTurn(store, 5, { parent: 't2' }),
  },
  { name: 'a heartbeat', before: (store) => saveTurns(store, 4), operate: (store) => touch(store, 't4') },
  {
    name: 'a rewrite of the latest state',
    before: (store) => saveTurns(store, 4, true),
    operate: (store) => store.saveSnapshot('t4', (current) => ({ ...current!, state: { custom: { turn: 77 } } })),
  },
  {
    name: 'a save that removes old ones',
    options: { maxPersistedChainLength: 2 },
    before: (store) => saveTurns(store, 6, true),
    operate: (store) => saveTurn(store, 7, { wide: true }),
  },
  {
    name: 'a save with full snapshots only',
    options: { checkpointInterval: 1 },
    before: (store) => saveTurns(store, 3),
    operate: (store) => saveTurn(store, 4),
  },
  {
    name: 'a save after which the log is rewritten',
    before: async (store) => {
      await saveTurns(store, 2);
      await touch(store, 't2', 134);
    },
    operate: (store) => touch(store, 't2', 1),
  },
  {
    name: 'a first save that makes records',
    before: async () => {},
    operate: (store) => saveTurn(store, 1, { scopes: [adding(ADA), adding(APP)] }),
  },
  {
    name: 'a save that changes one record and removes another',
    before: (store) => saveTurn(store, 1, { scopes: [adding(ADA), adding(APP)] }),
    operate: (store) => saveTurn(store, 2, { scopes: [adding(ADA), { id: APP, change: () => ({}) }] }),
  },
  {
    name: 'a record of a session that was not saved yet',
    before: async () => {},
    operate: (store) => writeSummary(store, 'new'),
  },
  {
    name: 'a record of a session that is replaced',
    before: async (store) => {
      await saveTurns(store, 2);
      await writeSummary(store, 'old');
    },
    operate: (store) => writeSummary(store, 'new'),
  },
  {
    name: 'pruning',
    before: (store) => saveTurns(store, 8, true),
    operate: (store) => store.prune({ maxChainLength: 2 }),
  },
  {
    name: 'deleting the session',
    before: async (store) => {
      await saveTurns(store, 5, true);
      await writeSummary(store, 'old');
    },
    operate: (store) => store.deleteSession({ sessionId: SESSION }),
  },
];

/** Everything that a caller can read: each possible snapshot, the session's latest, and the lists. */
export async function readAll(store: Store): Promise<unknown> {
  const snapshots: Record<string, unknown> = {};
  for (let turn = 1; turn <= 8; turn++) snapshots[`t${turn}`] = await store.getSnapshot({ snapshotId: `t${turn}` });
  const listed = (await store.listSnapshots({ sessionId: SESSION })).items;
  return {
    snapshots,
    latest: (await store.getSnapshot({ sessionId: SESSION }))?.snapshotId,
    listed: listed.map((item) => item.snapshotId),
    sessions: (await store.listSessions()).items,
    records: await store.readScopes({ scopes: [ADA, APP] }),
    summaries: (await store.readRecords({ sessionId: SESSION, kind: 'summary' })).map(({ value }) => value),
  };
}
