import { invalidArgument } from '../../src/errors.ts';
import type { ScopeChange } from '../../src/store/contract.ts';
import type { KeyQueue } from '../../src/store/key-queue.ts';
import { runScopeChange } from '../../src/store/scopes.ts';
import type { DocumentWrite } from './database.ts';
import { AlreadySaved, Stale } from './failures.ts';
import { readRecords, writeRecord, type RecordDocument } from './record-document.ts';
import type { Tenant } from './tenant.ts';

/** The writes of the records in a commit. */
export interface RecordWrites {
  readonly writes: readonly DocumentWrite[];
  /** Their size. */
  readonly bytes: number;
}

export const NO_RECORDS: RecordWrites = { writes: [], bytes: 0 };

/** Records have to share a commit with the snapshot: nothing of them can be written before. */
const MOST_BYTES = 2 * 1024 * 1024;
/** A commit fails so often because of the records before the save starts again from its beginning. */
const MOST_ATTEMPTS = 8;

/** What one save does to records. */
export class RecordChanges {
  readonly #tenant: Tenant;
  /** Saves of one process need not fight over a record. Taken last, when the save waits for nothing else. */
  readonly #queue: KeyQueue;
  readonly #nonce: string;
  readonly #changes: ReadonlyMap<string, ScopeChange>;

  /** @param changes By `scopeKey`. */
  constructor(
    changes: ReadonlyMap<string, ScopeChange>,
    tools: { readonly tenant: Tenant; readonly records: KeyQueue; readonly nonce: string },
  ) {
    this.#changes = changes;
    this.#tenant = tools.tenant;
    this.#queue = tools.records;
    this.#nonce = tools.nonce;
  }

  /**
   * Runs the save's commit with the writes of the records as they are now. Where it is others' writes of the records that it fails for, the
   * records alone are read and changed anew.
   *
   * @throws `AlreadySaved` when an earlier commit of this save changed a record.
   */
  async commit<T>(commit: (records: RecordWrites) => Promise<T>): Promise<T> {
    if (this.#changes.size === 0) return commit(NO_RECORDS);
    // In one order for all, so that no two saves wait for each other.
    const keys = [...this.#changes.keys()].toSorted().map((key) => this.#tenant.keyOf(key));
    const inTurn = keys.reduceRight<() => Promise<T>>(
      (work, key) => () => this.#queue.run(key, work),
      () => this.#insist(commit),
    );
    return inTurn();
  }

  async #insist<T>(commit: (records: RecordWrites) => Promise<T>): Promise<T> {
    let before = await this.#read();
    for (let attempt = 1; ; attempt++) {
      const records = await this.#writes(before);
      try {
        return await commit(records);
      } catch (error) {
        if (!(error instanceof Stale) || records.writes.length === 0 || attempt === MOST_ATTEMPTS) throw error;
        const now = await this.#read();
        if (now.every((one, i) => isSame(one, before[i]!))) throw error;
        before = now;
      }
    }
  }

  async #read(): Promise<RecordDocument[]> {
    const documents = await readRecords(this.#tenant, [...this.#changes.keys()]);
    if (documents.some(({ by }) => by.includes(this.#nonce))) throw new AlreadySaved();
    return documents;
  }

  async #writes(documents: readonly RecordDocument[]): Promise<RecordWrites> {
    const writes: DocumentWrite[] = [];
    let bytes = 0;
    for (const [i, [key, change]] of [...this.#changes].entries()) {
      const document = documents[i]!;
      const next = runScopeChange(change, document.record);
      if (!next) continue;
      const write = await writeRecord(document, next, { key, nonce: this.#nonce });
      writes.push(write);
      bytes += 'data' in write ? (write.data['record'] as Buffer).length : 0;
    }
    if (bytes > MOST_BYTES) {
      throw invalidArgument(
        `The records that one save changes may take ${MOST_BYTES} bytes together; these would take ${bytes}. Change them by several saves.`,
      );
    }
    return { writes, bytes };
  }
}

function isSame({ document: a }: RecordDocument, { document: b }: RecordDocument): boolean {
  return a.updateTime && b.updateTime ? a.updateTime.isEqual(b.updateTime) : a.exists === b.exists;
}
