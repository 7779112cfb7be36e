import { handOut } from '../../../src/snapshot/hand-out.ts';
import type { SessionSnapshot, SnapshotStatus } from '../../../src/store/contract.ts';
import { WatchHub } from '../../../src/store/parts/watch-hub.ts';
import type { KnownState } from '../../chain/known-state.ts';
import { stampOf, type Watch } from '../disk/file-system.ts';
import { snapshotName } from '../format/names.ts';
import type { SnapshotHead } from '../format/snapshot-file.ts';
import { locateForReading } from '../read/find-snapshot.ts';
import { readSnapshot } from '../read/read-snapshot.ts';
import type { TenantSessions } from '../tenant-sessions.ts';

interface Watched {
  readonly snapshotId: string;
  /** The last write that listeners were notified of. */
  notified: SnapshotHead | undefined;
  /** The stamp of the file at the last check. */
  stamp: string;
  /** A new listener waits for the current snapshot. */
  hasNewListener: boolean;
  /** The snapshot was missing before, so listeners get all its statuses. */
  wasMissing: boolean;
}

/**
 * Notifies listeners of saves to one tenant: of this process's own saves at once, of those by other processes when the system reports a
 * change in the tenant's folder or at the next poll. Works before the tenant has a folder, and does not create one.
 */
export class TenantWatch {
  readonly #tenant: TenantSessions;
  readonly #hub = new WatchHub<unknown>();
  /** By the names of their files. */
  readonly #watched = new Map<string, Watched>();
  readonly #due = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  #watch: (Watch & { readonly path: string }) | undefined;
  #isChecking = false;

  constructor(tenant: TenantSessions) {
    this.#tenant = tenant;
  }

  /** Notifies listeners of a save by this process. */
  saved(head: SnapshotHead, known: KnownState | undefined): void {
    const watched = this.#watched.get(snapshotName(head.meta.snapshotId));
    if (watched) this.#notify(watched, head, known);
  }

  subscribe(snapshotId: string, listener: (snapshot: SessionSnapshot) => void): () => void {
    const name = snapshotName(snapshotId);
    const known = this.#watched.get(name);
    const watched = known ?? { snapshotId, notified: undefined, stamp: '', hasNewListener: false, wasMissing: false };
    this.#watched.set(name, watched);
    watched.hasNewListener = true;
    const unsubscribe = this.#hub.subscribe(snapshotId, listener, () => this.#forget(name));
    this.#timer ??= setInterval(() => this.#checkSoon(), this.#tenant.shared.pollIntervalMs).unref();
    this.#watchFolder();
    this.#checkSoon(watched);
    return unsubscribe;
  }

  /** Call it when the last listener has left, or the store is closed. */
  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#watch?.close();
    this.#watch = undefined;
    this.#watched.clear();
    this.#hub.close();
    this.#tenant.shared.watches.delete(this.#tenant.folder.tenant);
  }

  #forget(name: string): void {
    this.#watched.delete(name);
    if (this.#watched.size === 0) this.close();
  }

  /** Watches the tenant's folder, or the store's while there is none. */
  #watchFolder(): void {
    const { store, path: own } = this.#tenant.folder;
    const end = (): void => {
      this.#watch?.close();
      this.#watch = undefined;
    };
    try {
      const path = [own, store.path].find((candidate) => store.fs.stat(candidate)?.isDirectory());
      if (path === undefined || path === this.#watch?.path) return;
      end();
      const onEvent = (name: string | undefined): void => {
        const watched = name === undefined || path !== own ? undefined : this.#watched.get(name);
        // Most changes in the tenant's folder are of snapshots without listeners.
        if (watched || name === undefined || path !== own) this.#checkSoon(watched);
      };
      const watch = store.fs.watch(path, onEvent, end);
      this.#watch = { path, close: () => watch.close() };
    } catch {
      // The system can't watch the folder; the timer polls it.
    }
  }

  /** Checks a snapshot, or all, in the next round of the event loop: one check for all changes until then. */
  #checkSoon(watched?: Watched): void {
    for (const one of watched ? [watched] : this.#watched.values()) this.#due.add(one);
    if (this.#isChecking) return;
    this.#isChecking = true;
    setImmediate(() => void this.#check());
  }

  async #check(): Promise<void> {
    for (const watched of this.#due) {
      this.#due.delete(watched);
      if (this.#watched.get(snapshotName(watched.snapshotId)) !== watched) continue;
      this.#watchFolder();
      try {
        await this.#checkOne(watched);
      } catch {
        // The snapshot can't be read now. The next check tries again; a caller that reads the snapshot gets the error.
        watched.stamp = '';
      }
    }
    this.#isChecking = false;
  }

  async #checkOne(watched: Watched): Promise<void> {
    const { snapshotId } = watched;
    const { folder } = this.#tenant;
    const stats = folder.kind() === 'none' ? undefined : folder.store.fs.stat(folder.snapshot(snapshotId));
    const stamp = stats ? stampOf(stats) : '';
    if (stamp === watched.stamp && !watched.hasNewListener && stats) return;
    watched.stamp = stamp;
    const home = stats && (await locateForReading(this.#tenant, snapshotId));
    const loaded = home && (await readSnapshot(this.#tenant, home, snapshotId));
    if (loaded) this.#notify(watched, loaded.head, loaded.known);
    else watched.wasMissing = true;
  }

  #notify(watched: Watched, head: SnapshotHead, known: KnownState | undefined): void {
    const { notified, snapshotId } = watched;
    const copy = (): SessionSnapshot => handOut(head.meta, { state: known && (() => known.state) });
    if (notified && isSameSnapshot(notified, head) && head.write <= notified.write) {
      if (head.write === notified.write) this.#hub.announce(snapshotId, head.meta.status, copy);
    } else {
      if (notified || watched.wasMissing) {
        for (const status of missedStatuses(head, notified)) {
          this.#hub.publish(snapshotId, status, () => withEarlierStatus(head, status));
        }
      }
      this.#hub.publish(snapshotId, head.meta.status, copy);
      watched.notified = head;
    }
    watched.hasNewListener = false;
  }
}

/** False if the snapshot was deleted and saved again in between. */
function isSameSnapshot(a: SnapshotHead, b: SnapshotHead): boolean {
  return a.incarnation === b.incarnation && a.place === b.place;
}

/** The statuses between two writes, which other processes set between two checks. */
function missedStatuses(head: SnapshotHead, notified: SnapshotHead | undefined): (SnapshotStatus | undefined)[] {
  const isSame = notified !== undefined && isSameSnapshot(notified, head);
  const from = isSame ? notified.write : 0;
  const between = head.statuses.filter(([write]) => write > from && write < head.write);
  const statuses = between.map(([, status]) => status ?? undefined);
  if (statuses.at(-1) === head.meta.status) statuses.pop();
  return statuses;
}

/** The snapshot with an earlier status. It has only fields that never change. */
function withEarlierStatus({ meta }: SnapshotHead, status: SnapshotStatus | undefined): SessionSnapshot {
  const { snapshotId, sessionId, parentId, createdAt } = meta;
  return {
    snapshotId,
    ...(sessionId !== undefined && { sessionId }),
    ...(parentId !== undefined && { parentId }),
    createdAt,
    ...(status !== undefined && { status }),
  };
}
