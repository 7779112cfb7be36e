import assert from 'node:assert/strict';
import type { SessionSnapshot } from '../../../src/store/contract.ts';
import { show, textOf } from './assertions.ts';
import type { Handle } from './handle.ts';
import type { Kit } from './kit.ts';

/** Who wrote: the watcher's own store; another that it hears; several at once, so that it may hear of the last only; one that it does not hear. */
type Writer = 'own' | 'other' | 'crowd' | 'unheard';

/** A watcher, what it was told, and what it should have been told. */
export class WatchLog {
  readonly handle: Handle;
  readonly snapshotId: string;
  readonly #told: SessionSnapshot[] = [];
  /** The snapshot as it was on subscribing and after each write since; of writes that raced what it may have been. */
  readonly #history: (readonly SessionSnapshot[])[];
  readonly #unsubscribe: () => void;
  #toldAtEnd: number | undefined;
  /** Whether every status is to be told, or the last one, or it is not known. */
  #expects: 'all' | 'last' | 'nothing' = 'all';
  /** Something was written while it was not known that the write before had been heard: of that one less may be left to tell. */
  #mayBeOvertaken = false;

  constructor(handle: Handle, snapshotId: string, current: SessionSnapshot | undefined) {
    this.handle = handle;
    this.snapshotId = snapshotId;
    this.#history = current ? [[current]] : [];
    this.#unsubscribe = handle.watch(snapshotId, (news) => this.#told.push(news));
    assert.equal(this.#told.length, 0, `the watcher of ${show(snapshotId)} was told inside the call`);
  }

  get hasHeard(): boolean {
    return this.#told.length > 0;
  }

  /**
   * Notes what was written, write by write. What another store wrote has to be heard before more is written: only its own it surely hears
   * one by one. That a rewrite which keeps the status was heard cannot be waited for: it need not be told by itself.
   */
  async wrote(kit: Kit, writer: Writer, writes: readonly (readonly SessionSnapshot[])[]): Promise<void> {
    if (this.#toldAtEnd !== undefined) return;
    const before = this.#statuses().length;
    this.#history.push(...writes);
    if (writer === 'unheard') this.#expects = 'nothing';
    const isUnsure =
      writer === 'crowd' || writes.some((states) => new Set(states.map(({ status }) => status)).size > 1);
    if (isUnsure && this.#expects === 'all') this.#expects = 'last';
    const isWaitingInVain = writer === 'other' && this.#statuses().length === before;
    if (isUnsure || isWaitingInVain) this.#mayBeOvertaken = true;
    if (writer === 'other' || writer === 'crowd') await this.#caughtUp(kit);
  }

  end(): void {
    this.#toldAtEnd ??= this.#told.length;
    this.#unsubscribe();
  }

  /** Waits until all is told that has to be, and checks it. */
  async settled(kit: Kit): Promise<void> {
    if (this.#toldAtEnd === undefined) {
      await this.#caughtUp(kit);
      const told = `the statuses of ${show(this.snapshotId)} that were told`;
      if (this.#expects === 'all') assert.deepEqual(changes(this.#told), this.#statuses(), told);
    } else {
      assert.equal(this.#told.length, this.#toldAtEnd, `tellings of ${show(this.snapshotId)} after the end`);
    }
    this.#checkOrder();
  }

  async #caughtUp(kit: Kit): Promise<void> {
    if (this.#expects === 'nothing') return;
    const expected = this.#statuses();
    const last = expected.at(-1);
    const what = `the telling that ${show(this.snapshotId)} is ${show(last)}`;
    const isDone = (): boolean =>
      this.#expects === 'all' ? changes(this.#told).length >= expected.length : this.#hasHeardLast(last);
    await kit.eventually(isDone, what);
  }

  /** The last status alone says nothing: an earlier write may have had it too, with another one between them that was not told yet. */
  #hasHeardLast(last: unknown): boolean {
    const news = this.#told.at(-1);
    const heard = news ? this.#history.findLastIndex((states) => states.some((state) => isAll(news, state))) : -1;
    return heard >= 0 && this.#history.slice(heard).every(([state]) => state!.status === last);
  }

  /** What was to be told; where it is not known for sure only the last counts, which is. */
  #statuses(): unknown[] {
    return changes(this.#history.map((states) => states[0]!));
  }

  /** Each telling is what the snapshot was, later than the telling before. Of a write that was overtaken less may be left to tell. */
  #checkOrder(): void {
    let at = 0;
    for (const [number, news] of this.#told.entries()) {
      const isOvertaken = this.#mayBeOvertaken && number < this.#told.length - 1;
      const fits = isOvertaken ? isPart : isAll;
      const found = this.#history.findIndex((states, i) => i >= at && states.some((state) => fits(news, state)));
      assert.ok(found >= 0, `${show(news)} was told, which ${show(this.snapshotId)} was not at that time`);
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
