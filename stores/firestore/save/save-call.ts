import { randomBytes } from 'node:crypto';
import type { DocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { quote } from '../../../src/errors.ts';
import type { SessionSnapshot } from '../../../src/snapshot/snapshot.ts';
import type { Cipher } from '../../../src/store/encryption/encryption.ts';
import type { SaveRequest } from '../../../src/store/base-session-store.ts';
import { assertExpectedLeaf } from '../../../src/store/choose-leaf.ts';
import { mergeDetails } from '../../../src/store/list/session-summary.ts';
import { unreadableSnapshot } from '../../../src/store/parts/unreadable.ts';
import type { KnownState } from '../../chain/known-state.ts';
import type { DocumentWrite } from '../database.ts';
import { FinalRefusal, Stale } from '../failures.ts';
import type { Pack } from '../format/checkpoint.ts';
import { sealedDetails, writePointer, type Pointer, type PointerDocument } from '../format/pointer-document.ts';
import type { SnapshotDocument, SnapshotHead } from '../format/snapshot-document.ts';
import type { StateChain } from '../format/state-chain.ts';
import { handOutLoaded, type SnapshotReader } from '../read/snapshot-reader.ts';
import type { TenantDatabase } from '../tenant-database.ts';
import type { Watches } from '../watch/watches.ts';
import { commitSave } from './commit-save.ts';
import { isLonger } from './json-length.ts';
import { bytesOf, planScopes, rememberScopes } from './plan-scopes.ts';
import { NO_STATE, type StatePlan } from './plan-state.ts';

/** One call of `saveSnapshot`, through all of its attempts. */
export class Save<S> {
  readonly request: SaveRequest<S>;
  readonly tenant: TenantDatabase;
  readonly reader: SnapshotReader;
  /** Names this save in the documents that it writes, to recognize a commit whose answer was lost. It is also the name of the state. */
  readonly nonce = randomBytes(12).toString('base64url');
  readonly #watches: Watches<S>;
  #usesCache = true;
  /** The session and the parent, known from an attempt: the next one reads them with one request. */
  #hint: { readonly sessionId: string; readonly parentId?: string | undefined } | undefined;
  #found = new Map<string, DocumentSnapshot>();
  /** The pointer and the snapshot were read at the same time. */
  #isReadAtOnce = false;
  #held: string | undefined;

  constructor(reader: SnapshotReader, watches: Watches<S>, request: SaveRequest<S>) {
    this.tenant = reader.tenant;
    this.reader = reader;
    this.request = request;
    this.#watches = watches;
  }

  /** Whether this attempt uses cached data, which the commit revalidates. Its errors are not final, because the cache may be outdated. */
  get usesCache(): boolean {
    return this.#usesCache;
  }

  /** Runs an attempt without the cache. First reads, with one request, all documents that an earlier attempt needed. */
  attemptToRead<T>(snapshotId: string, work: () => Promise<T>): Promise<T> {
    this.#usesCache = false;
    const { sessionId, parentId } = this.#hint ?? {};
    const refs = [this.tenant.snapshotRef(snapshotId)];
    if (sessionId !== undefined) refs.push(this.tenant.pointerRef(sessionId));
    if (parentId !== undefined) refs.push(this.tenant.snapshotRef(parentId));
    const attempt = async (): Promise<T> => {
      const documents = await this.tenant.database.getAll(refs);
      this.#found = new Map(documents.map((document) => [document.ref.path, document]));
      return work();
    };
    return sessionId === undefined ? attempt() : this.inSession({ sessionId, parentId }, attempt);
  }

  /** Runs `work` while no other save of this process works on the session. */
  inSession<T>(place: { sessionId: string; parentId?: string | undefined }, work: () => Promise<T>): Promise<T> {
    this.#hint = place;
    const { sessionId } = place;
    if (this.#held === sessionId) return work();
    return this.tenant.queues.sessions.run(this.tenant.keyOf(sessionId), async () => {
      this.#held = sessionId;
      try {
        return await work();
      } finally {
        this.#held = undefined;
      }
    });
  }

  /** The snapshot's document, even if it is expired. A document that was read ahead is used once. */
  async snapshot(snapshotId: string): Promise<SnapshotDocument | undefined> {
    const ref = this.tenant.snapshotRef(snapshotId);
    return this.reader.read(snapshotId, this.#take(ref.path) ?? (await this.tenant.database.get(ref)));
  }

  /** The session's pointer, even if it is expired: from the cache if this attempt uses it, else read. */
  async pointer(sessionId: string): Promise<PointerDocument | undefined> {
    const found = this.#take(this.tenant.pointerRef(sessionId).path);
    this.#isReadAtOnce = found !== undefined;
    const known = this.#usesCache ? this.tenant.pointer(sessionId) : undefined;
    if (!known) return this.reader.pointer(sessionId, found);
    return known === 'absent' ? undefined : known;
  }

  /** The error for a missing snapshot that the pointer names. */
  missingSnapshot(snapshotId: string): Error {
    return this.#isReadAtOnce ? unreadableSnapshot(snapshotId, 'its document is missing') : new Stale();
  }

  /**
   * Packs that a new checkpoint may reuse. The commit fails if one of their shards is missing; the next attempt then writes
   * all parts of the state.
   */
  async packsOf(chain: StateChain | undefined, head: SnapshotHead): Promise<readonly Pack[]> {
    return this.#usesCache ? this.reader.states.packsOf(chain, head) : [];
  }

  /** @throws `SessionConflictError`, `INVALID_ARGUMENT` */
  assertLeaf(sessionId: string | undefined, pointer: PointerDocument | undefined): void {
    assertExpectedLeaf(this.request.expectedLeafId, sessionId, pointer?.lineage.leaves.at(-1)?.id ?? null);
  }

  /** The session's pointer after the snapshot of `head` is saved. */
  nextPointer(
    before: PointerDocument | undefined,
    { meta, sessionId, owner, until }: SnapshotHead,
    changed: Pick<Pointer, 'lineage' | 'usage' | 'summaryUsage'> & {
      readonly head: Pointer['head'] | undefined;
      readonly cipher: Cipher | undefined;
    },
  ): Pointer {
    const { lineage, usage, summaryUsage, head, cipher } = changed;
    const begun = before ? before.begun : until && this.tenant.database.now();
    const details = before ? mergeDetails(before.details, this.request.session) : this.request.session;
    return {
      sessionId: sessionId!,
      owner,
      lineage,
      usage,
      ...(summaryUsage && { summaryUsage }),
      createdAt: before?.createdAt ?? meta.createdAt,
      updatedAt: meta.updatedAt ?? meta.createdAt,
      ...sealedDetails({ owner, ...(details && { details }), sealedTitle: before?.sealedTitle }, cipher),
      ...(head && { head }),
      ...(begun !== undefined && { begun }),
      ...(before?.holds ? { holds: before.holds } : until !== undefined && { until }),
    };
  }

  /**
   * Commits the save: the writes of the snapshot, of its session's pointer, and of records.
   *
   * @param saved.plan Optional. Without it the state does not change.
   * @param saved.stored The pointer before this save.
   * @throws `Stale` when a document is not as it was expected, `AlreadySaved` when an earlier commit of this save was made.
   */
  async commit(
    write: DocumentWrite,
    saved: { plan: StatePlan | undefined; pointer?: Pointer; stored?: PointerDocument | undefined },
  ): Promise<Timestamp> {
    const { tenant, nonce, usesCache } = this;
    const { plan = NO_STATE, pointer, stored } = saved;
    const records = await planScopes(tenant, this.request.scopes, { nonce, usesCache });
    const writes = [write, ...(pointer ? [writePointer(tenant, stored, pointer)] : [])];
    const all = [...writes, ...records.map((record) => record.write)];
    const [time, pointerTime, ...rest] = await commitSave(tenant, all, plan, bytesOf(records));
    rememberScopes(tenant, records, pointer ? rest : [pointerTime!, ...rest]);
    if (pointer) {
      const ref = tenant.pointerRef(pointer.sessionId);
      tenant.rememberPointer(pointer.sessionId, { ...pointer, ref, updateTime: pointerTime! });
    }
    if (plan.next) tenant.rememberState(nonce, plan.next.known);
    return time!;
  }

  /** Caches that the snapshot exists, and notifies its watchers. */
  noteSaved(head: SnapshotHead, state: KnownState | undefined, updateTime: Timestamp): string {
    const { snapshotId, status } = head.meta;
    const key = this.tenant.keyOf(snapshotId);
    this.tenant.caches.snapshots.set(key, true, 1);
    const version = { updateTime, nonce: this.nonce, status };
    this.#watches.saved(key, version, () => handOutLoaded({ snapshot: head, state }));
    return snapshotId;
  }

  #take(path: string): DocumentSnapshot | undefined {
    const found = this.#found.get(path);
    this.#found.delete(path);
    return found;
  }
}

/** The most metadata that fits into a document with the state. */
const LONGEST_METADATA = 400 * 1024;

/** Refuses a snapshot that is too large, before anything is sent. */
export function assertFits<S>(next: SessionSnapshot<S>, { settings: { maxStateBytes } }: TenantDatabase): void {
  const { state, ...meta } = next;
  const refuse = (reason: string): never => {
    throw new FinalRefusal(`Snapshot ${quote(next.snapshotId)} can't be saved: ${reason}`);
  };
  if (isLonger(state, maxStateBytes)) refuse(`its state is larger than maxStateBytes, ${maxStateBytes}.`);
  if (isLonger(meta, LONGEST_METADATA)) {
    refuse(`its fields without the state take more than ${LONGEST_METADATA} bytes. Move large values into the state.`);
  }
}
