import assert from 'node:assert/strict';
import type { SessionSnapshot } from '../../../src/store/contract.ts';
import { show, textOf } from './assertions.ts';
import type { Handle } from './handle.ts';
import type { Kit } from './kit.ts';

/**
 * The writer: the watcher's own store; another store that notifies it; several stores at once, which may deliver only the last write; a
 * store that does not notify it.
 */
type Writer = 'own' | 'other' | 'crowd' | 'silent';

/** A watcher, the notifications that it got, and those that it must get. */
export class WatchLog {
  readonly handle: Handle;
  readonly snapshotId: string;
  readonly #received: SessionSnapshot[] = [];
  /** The snapshot at the start and after each write; for racing writes, the possible snapshots. */
  readonly #history: (readonly SessionSnapshot[])[];
  readonly #unsubscribe: () => void;
  #receivedAtEnd: number | undefined;
  /** Whether every status must be delivered, only the last one, or it is unknown. */
  #expects: 'all' | 'last' | 'nothing' = 'all';
  /** Whether a write may have overtaken an earlier write, which then needs no full notification. */
  #mayBeOvertaken = false;

  constructor(handle: Handle, snapshotId: string, current: SessionSnapshot | undefined) {
    this.handle = handle;
    this.snapshotId = snapshotId;
    this.#history = current ? [[current]] : [];
    this.#unsubscribe = handle.watch(snapshotId, (news) => this.#received.push(news));
    assert.equal(this.#received.length, 0, `the watcher of ${show(snapshotId)} was notified inside the call`);
  }

  get hasNotification(): boolean {
    return this.#received.length > 0;
  }

  /**
   * Notes the writes, one by one. Waits for the notification of another store's write before the next write, because only writes of the
   * watcher's own store are surely delivered one by one. Does not wait for a rewrite with the same status, because it may be merged.
   */
  async wrote(kit: Kit, writer: Writer, writes: readonly (readonly SessionSnapshot[])[]): Promise<void> {
    if (this.#receivedAtEnd !== undefined) return;
    const before = this.#statuses().length;
    this.#history.push(...writes);
    if (writer === 'silent') this.#expects = 'nothing';
    const isUnsure =
      writer === 'crowd' || writes.some((states) => new Set(states.map(({ status }) => status)).size > 1);
    if (isUnsure && this.#expects === 'all') this.#expects = 'last';
    const isWaitingInVain = writer === 'other' && this.#statuses().length === before;
    if (isUnsure || isWaitingInVain) this.#mayBeOvertaken = true;
    if (writer === 'other' || writer === 'crowd') await this.#caughtUp(kit);
  }

  end(): void {
    this.#receivedAtEnd ??= this.#received.length;
    this.#unsubscribe();
  }

  /** Waits for all required notifications, and checks them. */
  async settled(kit: Kit): Promise<void> {
    if (this.#receivedAtEnd === undefined) {
      await this.#caughtUp(kit);
      const what = `the statuses of ${show(this.snapshotId)} in the notifications`;
      if (this.#expects === 'all') assert.deepEqual(changes(this.#received), this.#statuses(), what);
    } else {
      assert.equal(
        this.#received.length,
        this.#receivedAtEnd,
        `notifications of ${show(this.snapshotId)} after the end`,
      );
    }
    this.#checkOrder();
  }

  async #caughtUp(kit: Kit): Promise<void> {
    if (this.#expects === 'nothing') return;
    const expected = this.#statuses();
    const last = expected.at(-1);
    const what = `the notification that ${show(this.snapshotId)} is ${show(last)}`;
    const isDone = (): boolean =>
      this.#expects === 'all' ? changes(this.#received).length >= expected.length : this.#hasReceivedLast(last);
    await kit.eventually(isDone, what);
  }

  /**
   * Whether the last write was delivered. The last status alone is not enough: an earlier write may have the same status, with another
   * status between them that was not delivered yet.
   */
  #hasReceivedLast(last: unknown): boolean {
    const news = this.#received.at(-1);
    const found = news ? this.#history.findLastIndex((states) => states.some((state) => isAll(news, state))) : -1;
    return found >= 0 && this.#history.slice(found).every(([state]) => state!.status === last);
  }

  /** The statuses that must be delivered. If this is uncertain, only the last one, which is certain. */
  #statuses(): unknown[] {
    return changes(this.#history.map((states) => states[0]!));
  }

  /**
   * Each notification must equal the snapshot at a later time than the previous notification. An overtaken write may be delivered
   * incompletely.
   */
  #checkOrder(): void {
    let at = 0;
    for (const [number, news] of this.#received.entries()) {
      const isOvertaken = this.#mayBeOvertaken && number < this.#received.length - 1;
      const fits = isOvertaken ? isPart : isAll;
      const found = this.#history.findIndex((states, i) => i >= at && states.some((state) => fits(news, state)));
      assert.ok(
        found >= 0,
        `${show(news)} was delivered, but ${show(this.snapshotId)} did not have this value at that time`,
      );
      at = found + 1;
    }
  }
}

function isAll(news: SessionSnapshot, state: SessionSnapshot): boolean {
  return textOf(news) === textOf(state);
}

function isPart(news: SessionSnapshot, state: SessionSnapshot): boolean {
  return textOf({ ...state, ...news }) === textOf(state);
}

function changes(states: readonly SessionSnapshot[]): unknown[] {
  return states.map((state) => state.status).filter((status, i, all) => i === 0 || status !== all[i - 1]);
}
