import { failedPrecondition, invalidArgument } from '../../errors.ts';
import { parseJson } from '../../json/value.ts';
import type { SessionSnapshot } from '../../snapshot/snapshot.ts';
import { keepsScopes, type SessionStoreOptions, type SessionSummary, type SnapshotStore } from '../contract.ts';
import { listAllSnapshots } from '../list/items-of.ts';
import { detailsOf } from '../list/session-summary.ts';
import type { CopyResult } from './copy-sessions.ts';
import type { ExportedLine, RecordLine } from './session-lines.ts';
import { ScopeWriter, writeMissingRecords } from './write-beside.ts';

/** Options of {@link importSessions}. */
export interface ImportSessionsOptions extends SessionStoreOptions {
  /** Called after each session. */
  onProgress?: (progress: CopyResult) => void;
}

/**
 * Imports the output of `exportSessions` or `exportUser` into a store: whole trees with their ids, in the same order, with all records.
 * Data in the store is not changed: run an interrupted import again to complete it. A session with further snapshots in the store keeps
 * them; one with other snapshots than the export is reported as diverged, and no more of it is written. Memories are skipped.
 *
 * @param lines Text or bytes, cut anywhere, a file's stream say.
 * @throws `INVALID_ARGUMENT` for what is no line of an export, with its number; `FAILED_PRECONDITION` when the last line is missing: the export
 *   was cut off. What came before is imported.
 * @example
 * await importSessions(store, process.stdin);
 */
export async function importSessions(
  store: SnapshotStore,
  lines: AsyncIterable<string | Uint8Array>,
  options: ImportSessionsOptions = {},
): Promise<CopyResult> {
  const target = new Target(store, options);
  let number = 0;
  let isEnded = false;
  for await (const { text, isWhole } of linesIn(lines)) {
    if (!isWhole && isCut(text)) break;
    number++;
    if (text.trim() === '') continue;
    if (isEnded) throw invalidArgument(`Line ${number} comes after the last line of the export.`);
    const line = parseLine(text, number);
    isEnded = line.kind === 'end';
    await target.take(line, number);
  }
  const result = await target.finish();
  if (!isEnded) {
    throw failedPrecondition(
      `The export was cut off after line ${number}: its last line is missing. What came before is imported; import the whole file again.`,
    );
  }
  return result;
}

const MEMBERS: Readonly<Record<ExportedLine['kind'], string | undefined>> = {
  session: 'session',
  record: 'record',
  snapshot: 'snapshot',
  scope: 'scope',
  memory: 'line',
  unreadable: undefined,
  end: undefined,
};

function parseLine(text: string, number: number): ExportedLine {
  let line: unknown;
  try {
    line = parseJson(text);
  } catch {
    // The error below says where.
  }
  const { kind } = (line ?? {}) as { kind?: keyof typeof MEMBERS };
  const isKnown = typeof kind === 'string' && Object.hasOwn(MEMBERS, kind);
  const member = isKnown ? MEMBERS[kind] : undefined;
  const isWhole = isKnown && (member === undefined || typeof (line as Record<string, unknown>)[member] === 'object');
  if (isWhole) return line as ExportedLine;
  throw invalidArgument(`Line ${number} is no line of an export of sessions.`);
}

/** Whether a text without a line end is the beginning of a line. */
function isCut(text: string): boolean {
  const begin = '{"kind":"';
  if (text.slice(0, begin.length) !== begin.slice(0, text.length)) return false;
  try {
    parseJson(text);
    return false;
  } catch {
    return true;
  }
}

/** The lines of a text that arrives in pieces. A line is whole when its end has arrived. */
async function* linesIn(
  pieces: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<{ text: string; isWhole: boolean }> {
  const decoder = new TextDecoder();
  let open: string[] = [];
  for await (const piece of pieces) {
    const [first = '', ...rest] = (typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true })).split(
      '\n',
    );
    open.push(first);
    for (const next of rest) {
      yield { text: open.join(''), isWhole: true };
      open = [next];
    }
  }
  const last = open.join('') + decoder.decode();
  if (last !== '') yield { text: last, isWhole: false };
}

/** The session that is being imported. */
interface OpenSession {
  readonly summary: SessionSummary;
  /** Its snapshots in the store when the import came to it, in the order of their first saves. */
  readonly there: readonly string[];
  /** Written once its snapshots are. */
  readonly records: RecordLine['record'][];
  /** Snapshots of it in the export so far. */
  count: number;
  isDiverged: boolean;
}

class Target {
  readonly #store: SnapshotStore;
  readonly #caller: SessionStoreOptions;
  readonly #onProgress: ImportSessionsOptions['onProgress'];
  readonly #scopes: ScopeWriter<unknown> | undefined;
  readonly #result: CopyResult = { sessions: 0, snapshots: 0, scopes: 0, records: 0, diverged: [], partial: [] };
  #session: OpenSession | undefined;

  constructor(store: SnapshotStore, { context, onProgress }: ImportSessionsOptions) {
    this.#store = store;
    this.#caller = context === undefined ? {} : { context };
    this.#onProgress = onProgress;
    this.#scopes = keepsScopes(store) ? new ScopeWriter(store, this.#caller) : undefined;
  }

  async take(line: ExportedLine, number: number): Promise<void> {
    if (line.kind === 'session') {
      await this.#endSession();
      await this.#begin(line.session);
    } else if (line.kind === 'scope') await this.#scopes?.add(line.scope, line.values);
    // A session store keeps no memories.
    else if (line.kind === 'record' || line.kind === 'snapshot') {
      const { sessionId } = line.kind === 'record' ? line : line.snapshot;
      const session = this.#session;
      if (!session || (sessionId ?? session.summary.sessionId) !== session.summary.sessionId) {
        throw invalidArgument(`Line ${number} belongs to another session than the lines before it.`);
      }
      if (line.kind === 'record') session.records.push(line.record);
      else await this.#save(session, line.snapshot);
    }
  }

  async finish(): Promise<CopyResult> {
    await this.#endSession();
    this.#result.scopes = (await this.#scopes?.end()) ?? 0;
    return this.#result;
  }

  async #begin(summary: SessionSummary): Promise<void> {
    const { sessionId } = summary;
    const there = await listAllSnapshots(this.#store, { ...this.#caller, sessionId });
    this.#session = {
      summary,
      there: there.map(({ snapshotId }) => snapshotId),
      records: [],
      count: 0,
      isDiverged: false,
    };
  }

  /** Skips snapshots of an earlier import: it wrote in the same order, so they are the first ones of the export. */
  async #save(session: OpenSession, snapshot: SessionSnapshot): Promise<void> {
    const known = session.there[session.count++];
    session.isDiverged ||= known !== undefined && known !== snapshot.snapshotId;
    if (known !== undefined || session.isDiverged) return;
    const { sessionId } = session.summary;
    const details = this.#store.capabilities.details && { session: detailsOf(session.summary) };
    const options = { ...this.#caller, ...details };
    const create = (current: SessionSnapshot | undefined) => (current ? null : { ...snapshot, sessionId });
    if (await this.#store.saveSnapshot(snapshot.snapshotId, create, options)) this.#result.snapshots++;
  }

  async #endSession(): Promise<void> {
    const session = this.#session;
    if (!session) return;
    const { sessionId } = session.summary;
    if (session.isDiverged) this.#result.diverged.push(sessionId);
    else {
      this.#result.sessions++;
      this.#result.records += await writeMissingRecords(this.#store, { ...this.#caller, sessionId }, session.records);
    }
    this.#session = undefined;
    this.#onProgress?.({ ...this.#result, diverged: [...this.#result.diverged], partial: [] });
  }
}
