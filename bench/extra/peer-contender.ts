/**
 * One store of another framework under test, in a process of its own, like `../contender.ts` for our stores. A turn reads the thread's latest
 * checkpoint and puts the next one with the whole state; with an event log it reads the session and appends the turn's events. Started by
 * `../peers.ts` only.
 */
import { open as openFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { bytesAtRest, heapInUse, timed } from '../measure.ts';
import { Workload, type WorkloadState } from '../workload.ts';
import type { SessionState } from 'genkit/beta';

/** The peer, and its folder. */
export interface PeerSpec {
  name: string;
  /** LangGraph's SQLite saver has its defaults, which do not flush a commit, or is `flushed`. `flushes` is not a store. */
  kind:
    | 'langgraph-memory'
    | 'langgraph-sqlite'
    | 'langgraph-sqlite-flushed'
    | 'langgraph-postgres'
    | 'adk-memory'
    | 'flushes';
  folder: string;
}

/** `atRest`: the bytes of the store on its medium. */
export type PeerRequest = { do: 'turn' } | { do: 'information' } | { do: 'atRest' };

interface Peer {
  turn(state: SessionState<WorkloadState>, turn: number): Promise<unknown>;
  atRest(): Promise<number>;
}

/** The used part of LangGraph's savers. The peers are installed only for the bench, so the type check can't use their types. */
interface Saver {
  getTuple(config: object): Promise<{ config: object } | undefined>;
  put(config: object, checkpoint: object, metadata: object, newVersions: object): Promise<unknown>;
}

const spec = JSON.parse(process.argv[2]!) as PeerSpec;
const workload = new Workload();
const peer = await open();
const heapBefore = heapInUse();
let turns = 0;

function open(): Promise<Peer> {
  switch (spec.kind) {
    case 'langgraph-memory':
      return openMemory();
    case 'langgraph-sqlite':
      return openSqlite();
    case 'langgraph-sqlite-flushed':
      return openSqlite('synchronous = FULL');
    case 'langgraph-postgres':
      return openPostgres();
    case 'adk-memory':
      return openAdk();
    case 'flushes':
      return openFlushes();
  }
}

async function openMemory(): Promise<Peer> {
  const { MemorySaver } = await library<{ MemorySaver: new () => Saver }>('@langchain/langgraph-checkpoint');
  return { turn: await saving(new MemorySaver()), atRest: heap };
}

async function openSqlite(pragma?: string): Promise<Peer> {
  const { SqliteSaver } = await library<{
    SqliteSaver: { fromConnString(path: string): Saver & { db: { pragma(pragma: string): void } } };
  }>('@langchain/langgraph-checkpoint-sqlite');
  const saver = SqliteSaver.fromConnString(`${spec.folder}/checkpoints.sqlite`);
  if (pragma !== undefined) saver.db.pragma(pragma);
  return { turn: await saving(saver), atRest: async () => (await bytesAtRest(spec.folder)).bytes };
}

/** The Postgres saver, over a local socket to PGlite, a Postgres in this process. */
async function openPostgres(): Promise<Peer> {
  const { PGlite } = await library<{ PGlite: { create(folder: string): Promise<Database> } }>('@electric-sql/pglite');
  const { PGLiteSocketServer } = await library<{ PGLiteSocketServer: new (options: object) => SocketServer }>(
    '@electric-sql/pglite-socket',
  );
  const { PostgresSaver } = await library<{
    PostgresSaver: { fromConnString(url: string): Saver & { setup(): Promise<void> } };
  }>('@langchain/langgraph-checkpoint-postgres');
  const database = await PGlite.create(spec.folder);
  const server = new PGLiteSocketServer({ db: database, host: '127.0.0.1', port: 0, maxConnections: 4 });
  await server.start();
  const saver = PostgresSaver.fromConnString(`postgresql://postgres:postgres@${server.getServerConn()}/postgres`);
  await saver.setup();
  const atRest = async (): Promise<number> => {
    const { rows } = await database.query(
      "select sum(pg_total_relation_size(oid)) as bytes from pg_class where relname like 'checkpoint%' and relkind = 'r'",
    );
    return Number(rows[0]!.bytes);
  };
  return { turn: await saving(saver), atRest };
}

interface Database {
  query(sql: string): Promise<{ rows: { bytes: string }[] }>;
}

interface SocketServer {
  start(): Promise<void>;
  getServerConn(): string;
}

/** A turn like in LangGraph's runtime: each changed channel gets a new version. */
async function saving(saver: Saver): Promise<Peer['turn']> {
  const { uuid6 } = await library<{ uuid6: (clockSequence: number) => string }>('@langchain/langgraph-checkpoint');
  const versions: Record<string, number> = {};
  let artifacts = 0;
  return async ({ messages = [], custom, artifacts: kept = [] }, turn) => {
    const found = await saver.getTuple({ configurable: { thread_id: workload.sessionId, checkpoint_ns: '' } });
    const changed: Record<string, number> = { messages: turn, custom: turn };
    if (kept.length !== artifacts) changed['artifacts'] = turn;
    artifacts = kept.length;
    Object.assign(versions, changed);
    const checkpoint = {
      v: 4,
      id: uuid6(turn),
      ts: new Date().toISOString(),
      channel_values: { messages, custom, artifacts: kept },
      channel_versions: { ...versions },
      versions_seen: {},
    };
    const config = found?.config ?? { configurable: { thread_id: workload.sessionId, checkpoint_ns: '' } };
    await saver.put(config, checkpoint, { source: 'loop', step: turn, parents: {} }, changed);
  };
}

interface AdkService {
  createSession(request: object): Promise<object>;
  getSession(request: object): Promise<object | undefined>;
  appendEvent(request: { session: object; event: object }): Promise<unknown>;
}

/** A turn of an event log: one event for each message; the last has the changes of the state. */
async function openAdk(): Promise<Peer> {
  const { InMemorySessionService, createEvent } = await library<{
    InMemorySessionService: new () => AdkService;
    createEvent: (params: object) => object;
  }>('@google/adk');
  const service = new InMemorySessionService();
  const key = { appName: 'bench', userId: 'one', sessionId: workload.sessionId };
  await service.createSession(key);
  let told = 0;
  const turn: Peer['turn'] = async ({ messages = [], custom, artifacts = [] }, number) => {
    const session = (await service.getSession(key))!;
    const added = messages.slice(told);
    told = messages.length;
    for (const [index, { role, content }] of added.entries()) {
      const isLast = index === added.length - 1;
      const stateDelta = isLast ? { custom, ...(number % 50 === 0 && { artifacts }) } : {};
      const event = createEvent({
        author: role,
        invocationId: `turn-${number}`,
        content: { role, parts: content },
        actions: { stateDelta, artifactDelta: {}, requestedAuthConfigs: {}, requestedToolConfirmations: {} },
      });
      await service.appendEvent({ session, event });
    }
  };
  return { turn, atRest: heap };
}

/**
 * Only the system calls of a store with one file per snapshot: writes the turn's data to a file and a line to a log, flushes both in parallel,
 * renames the file, and flushes its folder.
 */
async function openFlushes(): Promise<Peer> {
  const log = await openFile(join(spec.folder, 'log'), 'a');
  const folder = await openFile(spec.folder);
  const write = async (text: string, turn: number): Promise<void> => {
    const temporary = join(spec.folder, `${turn}.tmp`);
    const file = await openFile(temporary, 'wx');
    await file.write(text);
    await log.write(`${turn}\n`);
    await Promise.all([file.sync(), log.sync()]);
    await rename(temporary, join(spec.folder, `${turn}.json`));
    await file.close();
    await folder.sync();
  };
  let told = 0;
  const turn: Peer['turn'] = async ({ messages = [] }, number) => {
    const added = messages.slice(told);
    told = messages.length;
    await write(JSON.stringify(added), number);
  };
  return { turn, atRest: async () => (await bytesAtRest(spec.folder)).bytes };
}

async function library<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}

async function heap(): Promise<number> {
  return heapInUse() - heapBefore - workload.information;
}

async function answer(request: PeerRequest): Promise<number> {
  if (request.do === 'atRest') return peer.atRest();
  if (request.do === 'information') return workload.information;
  const state = workload.next();
  return timed(() => peer.turn(state, ++turns));
}

process.on('message', (request: PeerRequest) => {
  answer(request).then(
    (value) => process.send!({ value }),
    (error: unknown) => process.send!({ error: String(error) }),
  );
});
process.send!({ value: 0 });
