import type { SessionSnapshot, SnapshotStatus } from '../../src/store/contract.ts';
import type { WatchHub } from '../../src/store/watch-hub.ts';
import type { Watch } from './file-system.ts';
import type { Session } from './session.ts';
import type { IndexNode } from './session-index.ts';
import type { Tenant } from './tenant.ts';

/** Reads a snapshot as a caller gets it, and says what was read; `undefined`: the session does not have it. */
export type ReadForWatch<S> = (
  session: Session,
  snapshotId: string,
) => Promise<{ readonly node: IndexNode; readonly snapshot: SessionSnapshot<S> } | undefined>;

/** A write of a watched snapshot that its listeners are to hear of. */
interface News {
  readonly session: Session;
  readonly node: IndexNode;
  /** Tells the session from one of the same id that was deleted before. */
  readonly epoch: string;
  /** Nothing but its status is known any more. */
  readonly isPast?: boolean;
}

interface Watched {
  readonly key: string;
  /** What is to be told, oldest first. */
  readonly news: News[];
  /** The write told last. */
  told: News | undefined;
  /** A new listener wants to be told how things are. */
  isAsked: boolean;
  isTelling: boolean;
  /** A look found no such snapshot: all that is found later is news. */
  wasMissing: boolean;
}

/**
 * Watches the snapshots of one tenant for listeners: what this process saves, what others save as soon as the system tells of a change in
 * the folder of logs, and every so often by looking. Works while there is nothing yet; makes no folders.
 */
export class TenantWatch<S> {
  readonly tenant: Tenant;
  readonly #hub: WatchHub<S>;
  readonly #read: ReadForWatch<S>;
  readonly #pollIntervalMs: number;
  readonly #onIdle: () => void;
  readonly #watched = new Map<string, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #watch: (Watch & { readonly path: string }) | undefined;
  #isLooking = false;
  #looksAgain = false;

  /** @param options.onIdle Called when the last listener has left: then this watch is of no use any more. */
  constructor(
    tenant: Tenant,
    hub: WatchHub<S>,
    options: { read: ReadForWatch<S>; pollIntervalMs: number; onIdle: () => void },
  ) {
    this.tenant = tenant;
    this.#hub = hub;
    this.#read = options.read;
    this.#pollIntervalMs = options.pollIntervalMs;
    this.#onIdle = options.onIdle;
    tenant.onEntry = (session, node, isFirst) => {
      // What came to be between two looks is told whole, though its log is read for the first time.
      if (!isFirst || this.#watched.get(node.snapshotId)?.wasMissing) this.#note(session, node);
    };
  }

  subscribe(snapshotId: string, listener: (snapshot: SessionSnapshot<S>) => void): () => void {
    const key = JSON.stringify([this.tenant.folder.tenant, snapshotId]);
    const watched = this.#watched.get(snapshotId) ?? {
      key,
      news: [],
      told: undefined,
      isAsked: false,
      isTelling: false,
      wasMissing: false,
    };
    this.#watched.set(snapshotId, watched);
    watched.isAsked = true;
    const unsubscribe = this.#hub.subscribe(key, listener, () => this.#forget(snapshotId));
    this.#start();
    this.#lookSoon();
    return unsubscribe;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#watch?.close();
    this.#watch = undefined;
    this.#watched.clear();
    this.tenant.onEntry = undefined;
  }

  #forget(snapshotId: string): void {
    this.#watched.delete(snapshotId);
    if (this.#watched.size > 0) return;
    this.close();
    this.#onIdle();
  }

  #start(): void {
    this.#timer ??= setInterval(() => this.#lookSoon(), this.#pollIntervalMs).unref();
    this.#watchFolder();
  }

  /** Watches the folder of logs, or the nearest one above it that there is. */
  #watchFolder(): void {
    const { fs, path: top } = this.tenant.folder.store;
    const { folder } = this.tenant;
    const end = (): void => {
      this.#watch?.close();
      this.#watch = undefined;
    };
    try {
      const path = [folder.sessions, folder.path, top].find((candidate) => fs.stat(candidate)?.isDirectory());
      if (path === undefined || path === this.#watch?.path) return;
      end();
      const watch = fs.watch(path, () => this.#lookSoon(), end);
      this.#watch = { path, close: () => watch.close() };
    } catch {
      // Not every system can, and not always; the timer looks.
    }
  }

  /** However many changes are told at once, all are seen by one look; one that comes during a look by another one. */
  #lookSoon(): void {
    this.#looksAgain = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    setImmediate(() => void this.#look());
  }

  async #look(): Promise<void> {
    while (this.#looksAgain && this.#watched.size > 0) {
      this.#looksAgain = false;
      this.#watchFolder();
      for (const snapshotId of this.#watched.keys()) await this.#lookAt(snapshotId);
    }
    this.#isLooking = false;
  }

  /** Reading the log tells `#note` of what is new in it; what was there when it was first read is found here. */
  async #lookAt(snapshotId: string): Promise<void> {
    try {
      const session = this.tenant.folder.kind() === 'none' ? undefined : await this.tenant.locate(snapshotId);
      const node = session?.index.tree.get(snapshotId);
      if (session && node) this.#note(session, node);
      else {
        const watched = this.#watched.get(snapshotId);
        if (watched) watched.wasMissing = true;
      }
    } catch {
      // It can't be read now; who asks for the snapshot is told why. The next look tries again.
    }
  }

  #note(session: Session, node: IndexNode): void {
    const watched = this.#watched.get(node.snapshotId);
    if (!watched) return;
    const news = { session, node, epoch: session.log.epoch };
    const before = watched.news.at(-1) ?? watched.told;
    const isNews = isNewer(news, before);
    if (isNews && (before || watched.wasMissing)) watched.news.push(...missed(news, before));
    if (isNews || (watched.isAsked && watched.news.length === 0)) watched.news.push(news);
    if (watched.news.length > 0 && !watched.isTelling) void this.#tell(watched);
  }

  async #tell(watched: Watched): Promise<void> {
    watched.isTelling = true;
    for (let next = watched.news.shift(); next; next = watched.news.shift()) {
      const { session, node } = next;
      const read = await this.#read(session, node.snapshotId).catch(() => undefined);
      if (!read) continue;
      const [following] = watched.news;
      // The state of a write that was overtaken is gone. Another one with its status tells more.
      if (following && !isOther(following, next) && following.node.status === node.status) continue;
      const told = node.foreign === undefined ? whatIsLeft(next, read) : read.snapshot;
      const copy = (): SessionSnapshot<S> => structuredClone(told);
      if (isNewer(next, watched.told)) this.#hub.publish(watched.key, told.status, copy);
      else this.#hub.announce(watched.key, told.status, copy);
      watched.isAsked = false;
      watched.told = next;
    }
    watched.isTelling = false;
  }
}

/** A write as it was: with its state, if no later write took that away. */
function whatIsLeft<S>(
  { session, node, epoch, isPast }: News,
  read: { readonly node: IndexNode; readonly snapshot: SessionSnapshot<S> },
): SessionSnapshot<S> {
  const { seq, stateRev } = node.version;
  const isThere =
    epoch === session.log.epoch && read.node.version.seq === seq && read.node.version.stateRev === stateRev;
  const state = isThere && !isPast ? read.snapshot.state : undefined;
  return { ...node.meta, ...(state && { state }) };
}

/** Statuses between two writes that nobody told of, because the log was written anew and has the last write only. */
function missed(news: News, before: News | undefined): News[] {
  const { node } = news;
  const isSame = before !== undefined && !isOther(news, before);
  const from = isSame ? before.node.rev : 0;
  const last = isSame ? (before.node.status ?? null) : undefined;
  const between = node.trail.filter(([rev]) => rev > from && rev < node.rev);
  if (between[0]?.[1] === last) between.shift();
  if (between.at(-1)?.[1] === (node.status ?? null)) between.pop();
  return between.map(([rev, status]) => ({ ...news, node: asItWas(node, rev, status ?? undefined), isPast: true }));
}

/** What a snapshot was when it had another status: beside that, what never changes. */
function asItWas(node: IndexNode, rev: number, status: SnapshotStatus | undefined): IndexNode {
  const { snapshotId, sessionId, parentId, createdAt } = node.meta;
  const meta = {
    snapshotId,
    ...(sessionId !== undefined && { sessionId }),
    ...(parentId !== undefined && { parentId }),
    createdAt,
    ...(status !== undefined && { status }),
  };
  return { ...node, rev, status, meta };
}

/** Whether a write came after another one of the same snapshot; one that was removed and saved anew counts as later. */
function isNewer(news: News, than: News | undefined): boolean {
  return than === undefined || isOther(news, than) || news.node.rev > than.node.rev;
}

function isOther(news: News, than: News): boolean {
  return news.epoch !== than.epoch || news.node.version.seq !== than.node.version.seq;
}
