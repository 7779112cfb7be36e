import type { DocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { GenkitError } from 'genkit';
import { invalidArgument, quote } from '../../src/errors.ts';
import { type SessionSnapshot, type SessionSnapshotInput, type SnapshotStatus } from '../../src/snapshot/snapshot.ts';
import type { ScopeChange, SnapshotMutator } from '../../src/store/contract.ts';
import type { KeyQueue } from '../../src/store/key-queue.ts';
import { assertExpectedLeaf } from '../../src/store/lookup.ts';
import { clearAway } from './clear-away.ts';
import { commitSave } from './commit-writes.ts';
import type { DocumentWrite } from './database.ts';
import { isLonger } from './json-length.ts';
import { FinalRefusal, isTransportFailure, Stale } from './failures.ts';
import { latestLeaf, type Lineage } from './lineage.ts';
import { newToken } from './state-chain.ts';
import type { StatePlan } from './state-writer.ts';
import { RecordChanges } from './record-changes.ts';
import type { PointerDocument } from './pointer-document.ts';
import type { SnapshotDocument } from './snapshot-document.ts';
import type { SnapshotReader } from './snapshot-reader.ts';
import type { Tenant } from './tenant.ts';

/** A snapshot at one time: those with an earlier `createTime`, and of the same one those with a lower `rev`, are older. */
export interface SavedVersion {
  readonly id: string;
  readonly rev: number;
  readonly createTime: Timestamp;
  readonly status: SnapshotStatus | undefined;
}

/** What a save works with. */
export interface SaveTools {
  readonly tenant: Tenant;
  readonly reader: SnapshotReader;
  /** One save of a snapshot at a time, ... */
  readonly snapshots: KeyQueue;
  /** ... and one of a session: those of one process need not fight over its pointer. Taken in this order. */
  readonly sessions: KeyQueue;
  /** ... and one of each record that it changes. */
  readonly records: KeyQueue;
  /** Told what was saved. */
  readonly onSaved: (version: SavedVersion, snapshot: () => SessionSnapshot) => void;
}

/**
 * How much of what is known may be true without being read: `cached` takes it all and lets the commit find out; whatever goes wrong then is
 * no answer, the save starts again with `read`, which reads all that it goes by.
 */
export type Trust = 'cached' | 'read';

/** What one call of `saveSnapshot` was given. */
export interface SaveArguments<S> {
  readonly mutator: SnapshotMutator<S>;
  readonly expectedLeafId?: string | null | undefined;
  /** Changes of records, by `scopeKey`. */
  readonly scopes: ReadonlyMap<string, ScopeChange>;
}

/** What one call of `saveSnapshot` asks for. */
export class SaveRequest<S> {
  readonly tools: SaveTools;
  readonly expectedLeafId: string | null | undefined;
  /** Names this save in what it writes: a commit whose answer was lost is recognised by it. */
  readonly nonce = newToken();
  /** What an attempt learned of the save: the next one reads all of it at once. */
  hint: { readonly sessionId: string; readonly parentId?: string | undefined } | undefined;
  readonly #mutator: SnapshotMutator<S>;
  readonly #records: RecordChanges;
  #held: string | undefined;
  #found = new Map<string, DocumentSnapshot>();

  constructor(tools: SaveTools, { mutator, expectedLeafId, scopes }: SaveArguments<S>) {
    this.tools = tools;
    this.#mutator = mutator;
    this.expectedLeafId = expectedLeafId;
    this.#records = new RecordChanges(scopes, { ...tools, nonce: this.nonce });
  }

  ask(current: SessionSnapshot<S> | undefined): SessionSnapshotInput<S> | null {
    return this.#mutator(current);
  }

  /** @throws `SessionConflictError`, `INVALID_ARGUMENT` */
  assertLeaf(sessionId: string | undefined, lineage: Lineage | undefined): void {
    const leaf = lineage && latestLeaf(lineage, Date.now());
    assertExpectedLeaf(this.expectedLeafId, sessionId, leaf?.id ?? null);
  }

  /**
   * Commits the save with the changes of records that belong to it.
   *
   * @returns The update times of `writes`.
   * @throws Stale when a document is not as it was expected, AlreadySaved when it is the save's own doing.
   */
  commit(writes: readonly DocumentWrite[], plan: StatePlan): Promise<Timestamp[]> {
    return this.#records.commit((records) => commitSave(this.tools.tenant, writes, plan, records));
  }

  /** Runs `work` while no other save of this process works on the session. */
  inSession<T>(sessionId: string, work: () => Promise<T>): Promise<T> {
    if (this.#held === sessionId) return work();
    const { sessions, tenant } = this.tools;
    return sessions.run(tenant.keyOf(sessionId), async () => {
      this.#held = sessionId;
      try {
        return await work();
      } finally {
        this.#held = undefined;
      }
    });
  }

  /** Reads with one request all that the save will ask for, as far as an earlier attempt has told. */
  async readAhead(snapshotId: string): Promise<void> {
    const { tenant } = this.tools;
    const refs = [tenant.snapshotRef(snapshotId)];
    if (this.hint) refs.push(tenant.pointerRef(this.hint.sessionId));
    if (this.hint?.parentId !== undefined) refs.push(tenant.snapshotRef(this.hint.parentId));
    const documents = await tenant.database.getAll(refs);
    this.#found = new Map(documents.map((document) => [document.ref.path, document]));
  }

  /**
   * The snapshot that is to be saved, when it is there.
   *
   * @throws Stale when it counted as gone and was still in the way.
   */
  async current(snapshotId: string): Promise<SnapshotDocument | undefined> {
    const { tenant, reader } = this.tools;
    const ref = tenant.snapshotRef(snapshotId);
    const document = this.#take(ref.path) ?? (await tenant.database.get(ref));
    const snapshot = reader.read(snapshotId, document);
    if (!snapshot && document.exists) throw new Stale(await clearAway(this.tools, document, snapshotId));
    return snapshot;
  }

  /** A snapshot that is there. What was read ahead is answered once. */
  async snapshot(snapshotId: string): Promise<SnapshotDocument | undefined> {
    const { tenant, reader } = this.tools;
    const found = this.#take(tenant.snapshotRef(snapshotId).path);
    return found ? reader.read(snapshotId, found) : reader.document(snapshotId);
  }

  /** The session's pointer: as it is known, or as it is. */
  async pointer(sessionId: string, trust: Trust): Promise<PointerDocument | undefined> {
    const { tenant, reader } = this.tools;
    const found = this.#take(tenant.pointerRef(sessionId).path);
    if (found) return reader.readPointer(sessionId, found);
    if (trust === 'read') return reader.pointer(sessionId);
    const known = tenant.pointer(sessionId);
    return known || tenant.firstSeqOf(sessionId) !== undefined ? known : reader.pointer(sessionId);
  }

  #take(path: string): DocumentSnapshot | undefined {
    const found = this.#found.get(path);
    this.#found.delete(path);
    return found;
  }
}

/** Metadata that fits into a document beside the state. */
const LONGEST_METADATA = 400 * 1024;

/** Refuses what is too large before anything is sent. */
export function assertFits<S>(next: SessionSnapshot<S>, tenant: Tenant): void {
  const { maxStateBytes: most } = tenant.settings;
  const id = quote(next.snapshotId);
  if (isLonger(next.state, most)) {
    throw new FinalRefusal(
      invalidArgument(`Snapshot ${id} can't be saved: its state is larger than maxStateBytes, ${most}.`),
    );
  }
  const { state: _state, ...meta } = next;
  if (isLonger(meta, LONGEST_METADATA)) {
    throw new FinalRefusal(
      invalidArgument(
        `Snapshot ${id} can't be saved: beside its state it has more than ${LONGEST_METADATA} bytes. Put them into the state.`,
      ),
    );
  }
}

/** What went wrong with what was not read is to be decided by reading; what no reading can change stays. */
export function doubted(error: unknown): unknown {
  const isOutage = error instanceof GenkitError && error.status === 'UNAVAILABLE';
  return error instanceof FinalRefusal || error instanceof Stale || isTransportFailure(error) || isOutage
    ? error
    : new Stale(error);
}
