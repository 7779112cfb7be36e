import type { Timestamp } from '@google-cloud/firestore';
import { logger } from 'genkit/logging';
import { describeThrown, quote } from '../../src/errors.ts';
import type { SessionSnapshot } from '../../src/snapshot/snapshot.ts';
import { WatchHub } from '../../src/store/watch-hub.ts';
import { Lifeline } from './lifeline.ts';
import type { SavedVersion } from './save-request.ts';
import { handOutLoaded, type SnapshotReader } from './snapshot-reader.ts';
import type { SnapshotDocument } from './snapshot-document.ts';
import type { Tenant } from './tenant.ts';

/** Pauses before a listener that failed is set up again, in ms. */
const PAUSES = [200, 500, 1000, 2000];

/** What is listened to, and for whom: one listener of Firestore for each watched snapshot. */
export class Watches<S> {
  readonly #hub = new WatchHub<S>();
  readonly #watches = new Map<string, Watch<S>>();
  #lifeline: Lifeline | undefined;

  subscribe(
    place: { tenant: Tenant; reader: SnapshotReader },
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
  ): () => void {
    const key = place.tenant.keyOf(snapshotId);
    const unsubscribe = this.#hub.subscribe(key, callback, () => this.#end(key));
    const known = this.#watches.get(key);
    if (known) known.greet();
    else this.#watches.set(key, new Watch({ ...place, key, snapshotId }, this.#hub));
    this.#lifeline ??= new Lifeline(place.tenant, () => this.#restore());
    return unsubscribe;
  }

  /** Takes note of what this process saved: it need not wait for the listener. */
  saved(key: string, version: SavedVersion, snapshot: () => SessionSnapshot): void {
    this.#watches.get(key)?.saved(version, snapshot as () => SessionSnapshot<S>);
  }

  close(): void {
    this.#hub.close();
    for (const watch of this.#watches.values()) watch.end();
    this.#watches.clear();
    this.#lifeline?.end();
    this.#lifeline = undefined;
  }

  #end(key: string): void {
    this.#watches.get(key)?.end();
    this.#watches.delete(key);
    if (this.#watches.size > 0) return;
    this.#lifeline?.end();
    this.#lifeline = undefined;
  }

  #restore(): void {
    for (const watch of this.#watches.values()) watch.restore();
  }
}

interface Place {
  readonly tenant: Tenant;
  readonly reader: SnapshotReader;
  readonly key: string;
  readonly snapshotId: string;
}

/** The listener of one snapshot. News are told in order, one after the other, because a state may have to be read first. */
class Watch<S> {
  readonly #place: Place;
  readonly #hub: WatchHub<S>;
  #stop: () => void = () => {};
  #tail: Promise<void> = Promise.resolve();
  #told: Omit<SavedVersion, 'id'> | undefined;
  #latest: (() => SessionSnapshot<S>) | undefined;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;

  constructor(place: Place, hub: WatchHub<S>) {
    this.#place = place;
    this.#hub = hub;
    this.#listen();
  }

  /** Tells a new subscriber what there is now: the listener may not have heard yet that the snapshot is gone. */
  greet(): void {
    // What the listener hears first is told to all.
    if (!this.#told) return;
    const { reader, snapshotId } = this.#place;
    this.#enqueue(async () => this.#hear(await reader.document(snapshotId)));
  }

  saved(version: SavedVersion, snapshot: () => SessionSnapshot<S>): void {
    this.#enqueue(async () => this.#tell(version, snapshot));
  }

  /** Sets the listener up anew; what changed in between is told, what was told is not. */
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
    const { tenant, reader, snapshotId } = this.#place;
    tenant.database.meter.add({ rpcs: 1 });
    this.#stop = tenant.snapshotRef(snapshotId).onSnapshot(
      (document) => {
        this.#failures = 0;
        tenant.database.countHeard(document);
        this.#enqueue(async () => this.#hear(this.#isEnded ? undefined : reader.read(snapshotId, document)));
      },
      (error) => this.#fail(error),
    );
  }

  #fail(error: unknown): void {
    if (this.#isEnded) return;
    if (this.#failures === 0) {
      logger.error(
        `Watching snapshot ${quote(this.#place.snapshotId)} was interrupted; it is taken up again. ${describeThrown(error)}`,
      );
    }
    const pause = PAUSES[Math.min(this.#failures++, PAUSES.length - 1)]!;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.restore(), pause);
    this.#timer.unref();
  }

  #enqueue(work: () => Promise<void>): void {
    this.#tail = this.#tail.then(work).catch((error: unknown) => this.#fail(error));
  }

  async #hear(snapshot: SnapshotDocument | undefined): Promise<void> {
    if (!snapshot) {
      this.#latest = undefined;
      return;
    }
    if (!this.#isNews(snapshot)) {
      if (this.#told && this.#latest) this.#hub.announce(this.#place.key, this.#told.status, this.#latest);
      return;
    }
    const state = await this.#stateOf(snapshot);
    const { createTime, rev, meta } = snapshot;
    const version = { createTime, rev, status: meta.status };
    if (state !== 'outdated') this.#tell(version, () => handOutLoaded({ snapshot, state }));
  }

  /** A state that can't be read because the snapshot has changed since is not told: the next news is on its way. */
  async #stateOf(
    snapshot: SnapshotDocument,
  ): Promise<Awaited<ReturnType<SnapshotReader['states']['stateOf']>> | 'outdated'> {
    const { reader, snapshotId } = this.#place;
    try {
      return await reader.states.stateOf(snapshot);
    } catch (error) {
      const now = await reader.document(snapshotId);
      if (!now?.updateTime.isEqual(snapshot.updateTime)) return 'outdated';
      throw error;
    }
  }

  #isNews({ createTime, rev }: { createTime: Timestamp; rev: number }): boolean {
    if (!this.#told) return true;
    const [now, before] = [createTime.valueOf(), this.#told.createTime.valueOf()];
    return now === before ? rev > this.#told.rev : now > before;
  }

  #tell(version: Omit<SavedVersion, 'id'>, snapshot: () => SessionSnapshot<S>): void {
    if (this.#isEnded || !this.#isNews(version)) return;
    this.#told = version;
    this.#latest = snapshot;
    this.#hub.publish(this.#place.key, version.status, snapshot);
  }
}
