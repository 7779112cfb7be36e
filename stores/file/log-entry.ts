import { stringifyJson } from '../../src/json/value.ts';
import type { SnapshotMetadata, SnapshotStatus } from '../../src/snapshot/snapshot.ts';

/** The statuses of a snapshot, each with the `rev` of the write that gave it, oldest first. */
export type Trail = readonly (readonly [rev: number, status: SnapshotStatus | null])[];

/** A snapshot was saved, or will be: see `SessionLog` for when an entry counts. */
export interface SaveEntry {
  readonly op: 'save';
  /** The snapshot's place in the order of first saves, which no other snapshot of the session ever has; see `SessionIndex.newSeq`. */
  readonly seq: number;
  /** Counts the writes of the snapshot. */
  readonly rev: number;
  /** Counts the changes of its state. */
  readonly stateRev: number;
  /** `seq` and `stateRev` of what its patches start from. */
  readonly base?: readonly [number, number];
  /** Parts of its state are in shards. */
  readonly lifted?: boolean;
  /** The name of its file, when that is another writer's. */
  readonly foreign?: string;
  /** When, in µs since 1970; later entries of the session have a higher one, and in rewritten logs all have that of the last one. */
  readonly t: number;
  /** `seq` of the snapshots that this save removes. */
  readonly retire?: readonly number[];
  /** The records that the save changes, by the names of their files. */
  readonly scopes?: readonly string[];
  /** It counts as it stands; no confirmation follows. */
  readonly ok?: true;
  /** In rewritten logs: the statuses that the snapshot had, when there were several. */
  readonly trail?: Trail;
  readonly meta: SnapshotMetadata;
}

/** Snapshots were removed. It counts as it stands; the confirmation says that their files were taken care of. */
export interface RetireEntry {
  readonly op: 'retire';
  readonly retire: readonly number[];
}

/** A version that no snapshot reads as, but that others start from. In rewritten logs only. */
export interface PieceEntry {
  readonly op: 'piece';
  readonly id: string;
  readonly seq: number;
  readonly stateRev: number;
  readonly base?: readonly [number, number];
  readonly lifted?: boolean;
}

/** The session was deleted. It counts as it stands; soon there is no log at all. */
export interface DeleteEntry {
  readonly op: 'delete';
}

/** The entry before was carried out whole. */
export interface ConfirmEntry {
  readonly op: 'ok';
  /** The `t` of the last save, so that a log's last line says when that was. */
  readonly t: number;
}

/** The entry before was not carried out, and never will be. */
export interface VoidEntry {
  readonly op: 'void';
}

/** One line of a session's log. */
export type LogEntry = SaveEntry | RetireEntry | PieceEntry | DeleteEntry | ConfirmEntry | VoidEntry;

let last = 0;

/**
 * The time for the next entry, in µs: what this process asks for later is higher, even within one tick of the clock, and so is what follows
 * in a session, wherever that was saved to before and however the clocks differ.
 *
 * @param sessionTime That of the session's last entry.
 */
export function nextTime(sessionTime: number): number {
  last = Math.max(last + 1, Date.now() * 1000);
  return Math.max(last, sessionTime + 1);
}

/** The line of an entry, its end included. */
export function formatEntry(entry: LogEntry): string {
  if (entry.op !== 'save') return `${JSON.stringify(entry)}\n`;
  const { meta, ...rest } = entry;
  return `${JSON.stringify(rest).slice(0, -1)},"meta":${stringifyJson(meta)}}\n`;
}
