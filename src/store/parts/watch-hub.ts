import type { SessionSnapshot } from '../contract.ts';
import { notify } from './notify.ts';

/** Called with each state of a snapshot. */
export type SnapshotListener<S> = (snapshot: SessionSnapshot<S>) => void;

interface Subscription<S> {
  readonly listener: SnapshotListener<S>;
  /** States that are not delivered yet, oldest first. */
  readonly queue: SessionSnapshot<S>[];
  /** The status that was queued last; `UNHEARD` before the first. */
  last: SessionSnapshot['status'] | typeof UNHEARD;
  scheduled: boolean;
  closed: boolean;
}

const UNHEARD = Symbol('unheard');

/**
 * Delivers snapshots to their listeners, by the rules of the contract for watching. A store calls `publish` with each state of a watched
 * snapshot, in order. A listener is notified of each status once, never inside the call that caused it, and not after it has unsubscribed.
 * A listener that throws does not affect others.
 */
export class WatchHub<S> {
  readonly #subscriptions = new Map<string, Set<Subscription<S>>>();

  /** The number of watched keys. */
  get size(): number {
    return this.#subscriptions.size;
  }

  /** Returns a function that ends the subscription. `onIdle` is called when the key has lost its last listener. */
  subscribe(key: string, listener: SnapshotListener<S>, onIdle?: () => void): () => void {
    const subscription: Subscription<S> = { listener, queue: [], last: UNHEARD, scheduled: false, closed: false };
    const set = this.#subscriptions.get(key) ?? new Set();
    this.#subscriptions.set(key, set.add(subscription));
    return () => {
      if (subscription.closed) return;
      subscription.closed = true;
      subscription.queue.length = 0;
      set.delete(subscription);
      if (set.size > 0 || this.#subscriptions.get(key) !== set) return;
      this.#subscriptions.delete(key);
      onIdle?.();
    };
  }

  /**
   * Notifies the key's listeners of a state of the snapshot. `copy` makes a copy for each listener that is notified. A rewrite that keeps the
   * status replaces a state of that status that is not delivered yet.
   */
  publish(key: string, status: SessionSnapshot['status'], copy: () => SessionSnapshot<S>): void {
    for (const subscription of this.#subscriptions.get(key) ?? []) this.#enqueue(subscription, status, copy);
  }

  /**
   * Notifies the key's listeners that were not notified before. A store calls it with the state that it reads after `subscribe`. Listeners
   * that have meanwhile got a newer state are skipped.
   */
  announce(key: string, status: SessionSnapshot['status'], copy: () => SessionSnapshot<S>): void {
    for (const subscription of this.#subscriptions.get(key) ?? []) {
      if (subscription.last === UNHEARD) this.#enqueue(subscription, status, copy);
    }
  }

  /** Ends all subscriptions. */
  close(): void {
    for (const set of this.#subscriptions.values()) {
      for (const subscription of set) {
        subscription.closed = true;
        subscription.queue.length = 0;
      }
    }
    this.#subscriptions.clear();
  }

  #enqueue(subscription: Subscription<S>, status: SessionSnapshot['status'], copy: () => SessionSnapshot<S>): void {
    if (subscription.last === status && subscription.queue.length > 0) subscription.queue.pop();
    subscription.queue.push(copy());
    subscription.last = status;
    this.#schedule(subscription);
  }

  #schedule(subscription: Subscription<S>): void {
    if (subscription.scheduled) return;
    subscription.scheduled = true;
    setImmediate(() => {
      subscription.scheduled = false;
      this.#deliver(subscription);
    });
  }

  #deliver(subscription: Subscription<S>): void {
    for (let next = subscription.queue.shift(); next && !subscription.closed; next = subscription.queue.shift()) {
      notify(
        () => subscription.listener(next),
        'A snapshot listener failed; the snapshot and the other listeners are not affected.',
      );
    }
  }
}
