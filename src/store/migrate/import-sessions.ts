import { failedPrecondition, invalidArgument } from '../../errors.ts';
import { parseJson } from '../../json/value.ts';
import type { SessionSnapshot, SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { SessionStoreOptions, SessionSummary, SnapshotStore } from '../contract.ts';
import { detailsOf } from '../list/session-summary.ts';
import { CopyTarget, type CopyResult } from './copy-target.ts';
import type { ExportedLine, RecordLine } from './session-lines.ts';

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
 * @param lines Text or bytes in chunks of any length, for example the stream of a file.
 * @throws `INVALID_ARGUMENT` for an invalid line, with its number; `FAILED_PRECONDITION` when the last line is missing: the export
 *   was cut off. The lines before are imported.
 * @example
 * await importSessions(store, process.stdin);
 */
export async function importSessions(
  store: SnapshotStore,
  lines: AsyncIterable<string | Uint8Array>,
  options: ImportSessionsOptions = {},
): Promise<CopyResult> {
  const { context, onProgress } = options;
  const running = new Import(new CopyTarget(store, context === undefined ? {} : { context }, onProgress));
  let number = 0;
  let isEnded = false;
  for await (const { text, isWhole } of linesIn(lines)) {
    if (!isWhole && isCut(text)) break;
    number++;
    if (text.trim() === '') continue;
    if (isEnded) throw invalidArgument(`Line ${number} comes after the last line of the export.`);
    const line = parseLine(text, number);
    isEnded = line.kind === 'end';
    await running.take(line, number);
  }
  const result = await running.finish();
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
    // Refused below, with the number of the line.
  }
  const { kind } = (line ?? {}) as { kind?: keyof typeof MEMBERS };
  const isKnown = typeof kind === 'string' && Object.hasOwn(MEMBERS, kind);
  const member = isKnown ? MEMBERS[kind] : undefined;
  const isWhole = isKnown && (member === undefined || typeof (line as Record<string, unknown>)[member] === 'object');
  if (isWhole) return line as ExportedLine;
  throw invalidArgument(`Line ${number} is not a line of an export of sessions.`);
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

/** The lines of a text that arrives in chunks. A line is whole when its end has arrived. */
async function* linesIn(
  chunks: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<{ text: string; isWhole: boolean }> {
  const decoder = new TextDecoder();
  let open: string[] = [];
  for await (const chunk of chunks) {
    const [first = '', ...rest] = (typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })).split(
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
  /** Its snapshots in the store before its import, in the order of their first saves. */
  readonly there: readonly SnapshotMetadata[];
  /** Written after its snapshots. */
  readonly records: RecordLine['record'][];
  /** Snapshots of it in the export so far. */
  count: number;
  isDiverged: boolean;
}

/** Imports the lines of an export, one after the other. */
class Import {
  readonly #target: CopyTarget<unknown>;
  #session: OpenSession | undefined;

  constructor(target: CopyTarget<unknown>) {
    this.#target = target;
  }

  async take(line: ExportedLine, number: number): Promise<void> {
    if (line.kind === 'session') {
      await this.#endSession();
      const there = await this.#target.snapshotsOf(line.session.sessionId);
      this.#session = { summary: line.session, there, records: [], count: 0, isDiverged: false };
    } else if (line.kind === 'scope') await this.#target.addScope(line.scope, line.values);
    // Memories are skipped: a session store does not keep them.
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
    await this.#target.endScopes();
    return this.#target.result;
  }

  /** Skips snapshots of an earlier import: it wrote in the same order, so they are the first ones of the export. */
  async #save(session: OpenSession, snapshot: SessionSnapshot): Promise<void> {
    const known = session.there[session.count++];
    session.isDiverged ||= known !== undefined && known.snapshotId !== snapshot.snapshotId;
    if (known !== undefined || session.isDiverged) return;
    const { sessionId } = session.summary;
    await this.#target.save({ ...snapshot, sessionId }, detailsOf(session.summary));
  }

  async #endSession(): Promise<void> {
    if (!this.#session) return;
    const { summary, isDiverged, records } = this.#session;
    this.#session = undefined;
    await this.#target.endSession(summary.sessionId, isDiverged ? 'diverged' : 'whole', records);
  }
}
