import type { Timestamp } from '@google-cloud/firestore';
import { logger } from 'genkit/logging';
import { describeThrown, isUnreadable, quote } from '../../../src/errors.ts';
import type { SessionSnapshot, SnapshotStatus } from '../../../src/snapshot/snapshot.ts';
import { WatchHub } from '../../../src/store/parts/watch-hub.ts';
import { isDataLoss } from '../failures.ts';
import type { SnapshotDocument } from '../format/snapshot-document.ts';
import { handOutLoaded, type SnapshotReader } from '../read/snapshot-reader.ts';
import { ConnectionCheck } from './connection-check.ts';

/** Pauses before a listener that failed is set up again, in ms. */
const PAUSES = [200, 500, 1000, 2000];

/** A write of a watched snapshot. */
interface SavedVersion {
  readonly updateTime: Timestamp;
  /** Names the save. */
  readonly nonce: string;
  readonly status: SnapshotStatus | undefined;
}

/** All watchers of a store: one listener of Firestore for each watched snapshot. */
export class Watches<S> {
  readonly #hub = new WatchHub<S>();
  readonly #watches = new Map<string, Watch<S>>();
  #check: ConnectionCheck | undefined;

  subscribe(reader: SnapshotReader, snapshotId: string, callback: (snapshot: SessionSnapshot<S>) => void): () => void {
    const key = reader.tenant.keyOf(snapshotId);
    const unsubscribe = this.#hub.subscribe(key, callback, () => this.#end(key));
    const known = this.#watches.get(key);
    if (known) known.publishCurrent();
    else this.#watches.set(key, new Watch(reader, snapshotId, this.#hub));
    this.#check ??= new ConnectionCheck(reader.tenant, () => this.#restore());
    return unsubscribe;
  }

  /** Notifies the watchers of a save by this process at once, without waiting for the listener. */
  saved(key: string, version: SavedVersion, snapshot: () => SessionSnapshot<S>): void {
    this.#watches.get(key)?.saved(version, snapshot);
  }

  close(): void {
    this.#hub.close();
    for (const watch of this.#watches.values()) watch.end();
    this.#watches.clear();
    this.#endCheck();
  }

  #end(key: string): void {
    this.#watches.get(key)?.end();
    this.#watches.delete(key);
    if (this.#watches.size === 0) this.#endCheck();
  }

  #endCheck(): void {
    this.#check?.end();
    this.#check = undefined;
  }

  #restore(): void {
    for (const watch of this.#watches.values()) watch.restore();
  }
}

/** The listener of one snapshot. Versions are handled one after the other, because a state may have to be read first. */
class Watch<S> {
  readonly #reader: SnapshotReader;
  readonly #snapshotId: string;
  readonly #key: string;
  readonly #hub: WatchHub<S>;
  #stop: () => void = () => {};
  #tail: Promise<void> = Promise.resolve();
  /** The version that was published last. */
  #version: SavedVersion | undefined;
  /** The snapshot of `#version`, while it exists. */
  #latest: (() => SessionSnapshot<S>) | undefined;
  /** Failures since a version was last read. */
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;

  constructor(reader: SnapshotReader, snapshotId: string, hub: WatchHub<S>) {
    this.#reader = reader;
    this.#snapshotId = snapshotId;
    this.#key = reader.tenant.keyOf(snapshotId);
    this.#hub = hub;
    this.#listen();
  }

  /** Notifies a new subscriber of the current snapshot. Reads it, because it may have been removed since the listener's last event. */
  publishCurrent(): void {
    // The listener's first version is published to all.
    if (!this.#version) return;
    this.#enqueue(async () => this.#receive(await this.#reader.snapshot(this.#snapshotId)));
  }

  saved(version: SavedVersion, snapshot: () => SessionSnapshot<S>): void {
    this.#enqueue(async () => this.#publish(version, snapshot));
  }

  /** Sets the listener up again. Publishes a change in between, and no version twice. */
  restore(): void {
    if (this.#isEnded) return;
    clearTimeout(this.#timer);
    this.#stop();
    this.#listen();
  }

  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#stop();
  }

  #listen(): void {
    const { tenant } = this.#reader;
    try {
      this.#stop = tenant.database.listen(
        tenant.snapshotRef(this.#snapshotId),
        (document) =>
          this.#enqueue(async () => {
            if (this.#isEnded) return;
            await this.#receive(await this.#reader.snapshot(this.#snapshotId, document));
            this.#failures = 0;
          }),
        (error) => this.#fail(error),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#isEnded) return;
    // The listener still works, and gets the next version.
    const isWaiting = isUnreadable(error);
    if (this.#failures === 0) {
      const snapshot = `snapshot ${quote(this.#snapshotId)}`;
      const what = isWaiting
        ? `Watching ${snapshot}: its watchers wait for a version that can be read.`
        : `Watching ${snapshot} was interrupted and is set up again.`;
      logger.error(`${what} ${describeThrown(error)}`);
    }
    const pause = PAUSES[Math.min(this.#failures++, PAUSES.length - 1)]!;
    if (isWaiting) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.restore(), pause);
    this.#timer.unref();
  }

  #enqueue(work: () => Promise<void>): void {
    this.#tail = this.#tail.then(work).catch((error: unknown) => this.#fail(error));
  }

  async #receive(snapshot: SnapshotDocument | undefined): Promise<void> {
    if (!snapshot) {
      this.#latest = undefined;
      return;
    }
    const { updateTime, by, meta } = snapshot;
    const version = { updateTime, nonce: by[0]!, status: meta.status };
    if (!this.#isNew(version)) {
      if (this.#latest) this.#hub.announce(this.#key, this.#version?.status, this.#latest);
      return;
    }
    try {
      const state = await this.#reader.states.stateOf(snapshot);
      const opened = await this.#reader.opened(snapshot);
      this.#publish(version, () => handOutLoaded({ snapshot: opened, state }));
    } catch (error) {
      // The state can't be read because the snapshot has changed since. The listener will get the new version.
      if (!isDataLoss(error) || (await this.#reader.recheck(snapshot)) === 'unchanged') throw error;
    }
  }

  #isNew({ updateTime, nonce }: SavedVersion): boolean {
    if (!this.#version) return true;
    return nonce !== this.#version.nonce && updateTime.valueOf() > this.#version.updateTime.valueOf();
  }

  #publish(version: SavedVersion, snapshot: () => SessionSnapshot<S>): void {
    if (this.#isEnded || !this.#isNew(version)) return;
    this.#version = version;
    this.#latest = snapshot;
    this.#hub.publish(this.#key, version.status, snapshot);
  }
}
