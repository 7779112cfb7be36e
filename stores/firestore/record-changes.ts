import type { Timestamp } from '@google-cloud/firestore';
import { invalidArgument } from '../../src/errors.ts';
import type { ScopeChange, ScopeRecord } from '../../src/store/contract.ts';
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

/** The change of one record. */
interface Step {
  readonly key: string;
  readonly before: RecordDocument;
  /** What it becomes; `undefined`: it stays as it is. */
  readonly next: ScopeRecord | undefined;
}

/** The changes of all records of a save. */
interface Plan extends RecordWrites {
  readonly steps: readonly Step[];
  /** What the records are when the writes are made, in the order of these. */
  readonly after: readonly { readonly key: string; readonly document: RecordDocument }[];
}

/** What one save does to records. */
export class RecordChanges {
  readonly #tenant: Tenant;
  /** Saves of one process need not fight over a record. Taken last, when the save waits for nothing else. */
  readonly #queue: KeyQueue;
  readonly #nonce: string;
  readonly #changes: ReadonlyMap<string, ScopeChange>;
  readonly #keys: readonly string[];

  /** @param changes By `scopeKey`. */
  constructor(
    changes: ReadonlyMap<string, ScopeChange>,
    tools: { readonly tenant: Tenant; readonly records: KeyQueue; readonly nonce: string },
  ) {
    this.#changes = changes;
    this.#keys = [...changes.keys()];
    this.#tenant = tools.tenant;
    this.#queue = tools.records;
    this.#nonce = tools.nonce;
  }

  /**
   * Runs the save's commit with the writes of the records: first by what is known of them, then, where it is others' writes of the records
   * that it fails for, by what is read, with the changes made anew.
   *
   * @param commit Answers the update times of the records' writes, then those of its own.
   * @returns Those of its own.
   * @throws `AlreadySaved` when an earlier commit of this save changed a record.
   */
  async commit(commit: (records: RecordWrites) => Promise<Timestamp[]>): Promise<Timestamp[]> {
    if (this.#keys.length === 0) return commit(NO_RECORDS);
    // In one order for all, so that no two saves wait for each other.
    const keys = this.#keys.toSorted().map((key) => this.#tenant.keyOf(key));
    const inTurn = keys.reduceRight<() => Promise<Timestamp[]>>(
      (work, key) => () => this.#queue.run(key, work),
      () => this.#insist(commit),
    );
    return inTurn();
  }

  async #insist(commit: (records: RecordWrites) => Promise<Timestamp[]>): Promise<Timestamp[]> {
    let plan = (await this.#planKnown()) ?? (await this.#planRead(await readRecords(this.#tenant, this.#keys)));
    for (let attempt = 1; ; attempt++) {
      try {
        const times = await commit(plan);
        return this.#remember(plan, times);
      } catch (error) {
        if (!(error instanceof Stale) || plan.writes.length === 0 || attempt === MOST_ATTEMPTS) throw error;
        const now = await readRecords(this.#tenant, this.#keys);
        if (now.every((one, i) => isSame(one, plan.steps[i]!.before))) throw error;
        plan = await this.#planRead(now);
      }
    }
  }

  /**
   * Plans by what is known of the records: a write finds out whether it is still so. What no write would confirm is read: a record that the
   * change leaves as it is, or refuses.
   *
   * @returns `undefined` when all is to be read.
   */
  async #planKnown(): Promise<Plan | undefined> {
    const known = this.#keys.map((key) => this.#guess(key));
    if (known.every((step) => step === undefined)) return undefined;
    const rest = this.#keys.filter((_, i) => known[i] === undefined);
    const read = await readRecords(this.#tenant, rest);
    const plan = await this.#plan(known.map((step, i) => step ?? this.#step(this.#keys[i]!, read.shift()!)));
    return plan.bytes > MOST_BYTES ? undefined : plan;
  }

  #guess(key: string): Step | undefined {
    const known = this.#tenant.record(key);
    if (!known) return undefined;
    try {
      const step = this.#step(key, known);
      return step.next && step;
    } catch {
      return undefined;
    }
  }

  async #planRead(documents: readonly RecordDocument[]): Promise<Plan> {
    const plan = await this.#plan(documents.map((document, i) => this.#step(this.#keys[i]!, document)));
    if (plan.bytes <= MOST_BYTES) return plan;
    throw invalidArgument(
      `The records that one save changes may take ${MOST_BYTES} bytes together; these would take ${plan.bytes}. Change them by several saves.`,
    );
  }

  /** @throws `AlreadySaved`, and what the change throws. */
  #step(key: string, before: RecordDocument): Step {
    if (before.by.includes(this.#nonce)) throw new AlreadySaved();
    return { key, before, next: runScopeChange(this.#changes.get(key)!, before.record) };
  }

  async #plan(steps: readonly Step[]): Promise<Plan> {
    const writes: DocumentWrite[] = [];
    const after: { key: string; document: RecordDocument }[] = [];
    let bytes = 0;
    for (const { key, before, next } of steps) {
      if (!next) continue;
      const written = await writeRecord(before, next, { key, nonce: this.#nonce });
      writes.push(written.write);
      after.push({ key, document: written.after });
      bytes += written.bytes;
    }
    return { steps, writes, after, bytes };
  }

  /** The next save of this process knows what this one has written. Answers the times that are left. */
  #remember({ writes, after }: Plan, times: readonly Timestamp[]): Timestamp[] {
    for (const [i, { key, document }] of after.entries()) {
      const isThere = document.record !== undefined;
      this.#tenant.rememberRecord(key, { ...document, updateTime: isThere ? times[i] : undefined });
    }
    return times.slice(writes.length);
  }
}

function isSame({ updateTime: a }: RecordDocument, { updateTime: b }: RecordDocument): boolean {
  return a && b ? a.isEqual(b) : a === b;
}
