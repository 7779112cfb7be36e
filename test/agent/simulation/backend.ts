import { GenkitError } from 'genkit';
import {
  InMemorySessionStore,
  type SaveSnapshotOptions,
  type ScopeRecord,
  type ScopeStore,
  type SessionSnapshot,
  type SnapshotMutator,
  type SnapshotStore,
} from 'genkitx-agents';
import { storeAround } from '../../session/store-around.ts';
import type { Random } from '../../support/random.ts';
import { pause } from './clock.ts';

/** A write that reached the medium. */
export interface Commit {
  readonly before: SessionSnapshot | undefined;
  readonly after: SessionSnapshot;
}

/** The probabilities of the faults of a store call. */
export interface Faults {
  /** It fails, and nothing was written. */
  readonly refused: number;
  /** The write is done, but the answer is an error. */
  readonly lost: number;
  /** It never answers; the write is done or not. */
  readonly hung: number;
  /** It takes seconds. */
  readonly slow: number;
  /** Runs the mutator again without a concurrent write. */
  readonly rerun: number;
}

/** The fault of one call of the store. */
type Fault = keyof Faults;

const NO_FAULTS: Faults = { refused: 0, lost: 0, hung: 0, slow: 0, rerun: 0 };

/**
 * The medium that all processes share: a store whose saves are optimistic transactions, as those of a database are. A save reads, asks the
 * mutator, and commits a while later, unless another process committed in the meantime: then it starts again.
 */
export class Backend {
  readonly medium = new InMemorySessionStore();
  readonly commits: Commit[] = [];
  readonly versions = new Map<string, number>();
  readonly random: Random;
  /** Whether its changes can be watched; otherwise the runtime sees them with its heartbeats. */
  readonly isWatched: boolean;
  #faults: Faults;

  constructor(random: Random, faults: Faults, isWatched: boolean) {
    this.random = random;
    this.#faults = faults;
    this.isWatched = isWatched;
  }

  /** From here on there are no faults. */
  calmDown(): void {
    this.#faults = NO_FAULTS;
  }

  /** Draws the fault of a call. Most calls of an agent read more than once, and a read that fails ends most of them. */
  fault(method: string): Fault | undefined {
    if (method !== 'saveSnapshot' && this.random.next() < 0.7) return undefined;
    let dice = this.random.next();
    for (const [fault, share] of Object.entries(this.#faults) as [Fault, number][]) {
      if ((dice -= share) < 0) return fault;
    }
    return undefined;
  }
}

function unwatched<Store extends SnapshotStore>(store: Store): Store {
  const others = { capabilities: { ...store.capabilities, watch: false }, onSnapshotStateChange: undefined };
  return new Proxy(store, {
    get: (target, name) =>
      (Object.hasOwn(others, name) ? Reflect.get(others, name) : Reflect.get(target, name)) as unknown,
  });
}

const never = () => new Promise<never>(() => {});

/** Transient errors of databases and networks. */
const TRANSIENT = ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'INTERNAL', 'RESOURCE_EXHAUSTED', undefined] as const;

/** The connection of one process to the medium. */
export class Connection {
  readonly store: SnapshotStore & ScopeStore;
  /** The faults that the agent saw or waited for, by the number of its call. */
  readonly faults = new Map<unknown, { kind: Fault; method: string; snapshotId?: string }[]>();
  readonly #backend: Backend;
  #isCut = false;
  #asleepUntil = 0;

  constructor(backend: Backend) {
    this.#backend = backend;
    const store = storeAround(backend.medium, (name, args, make) => this.#handle(name, args, make));
    this.store = backend.isWatched ? store : unwatched(store);
  }

  /** The process is dead: no answer reaches it. Its requests may still arrive. */
  cut(): void {
    this.#isCut = true;
  }

  /** For this time, no request and no answer gets through. */
  sleep(ms: number): void {
    this.#asleepUntil = Date.now() + ms;
  }

  /** It was cut off at some time. */
  get hasSlept(): boolean {
    return this.#asleepUntil > 0;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  #handle(name: string, args: readonly unknown[], make: () => unknown): unknown {
    if (name === 'onSnapshotStateChange')
      return this.#watch(args as Parameters<SnapshotStore['onSnapshotStateChange']>);
    if (name === 'saveSnapshot') return this.#save(...(args as Parameters<SnapshotStore['saveSnapshot']>));
    return this.#read(name, args, make as () => Promise<unknown>);
  }

  #watch([snapshotId, callback, options]: Parameters<SnapshotStore['onSnapshotStateChange']>): () => void {
    const ms = this.#latency(undefined);
    let isOver = false;
    const end = this.#backend.medium.onSnapshotStateChange(
      snapshotId,
      (snapshot) => void setTimeout(() => !isOver && !this.#isCut && !this.#isAsleep && callback(snapshot), ms),
      options,
    );
    return () => {
      isOver = true;
      end();
    };
  }

  async #read(method: string, args: readonly unknown[], make: () => Promise<unknown>): Promise<unknown> {
    const fault = this.#fault(method, args[0]);
    await this.#under(fault);
    const answer = await make();
    await this.#back(fault);
    return answer;
  }

  async #save(
    snapshotId: string | undefined,
    mutator: SnapshotMutator,
    options: SaveSnapshotOptions = {},
  ): Promise<string | null> {
    const fault = this.#fault('saveSnapshot', options, snapshotId);
    await this.#under(fault);
    let saved: string | null;
    try {
      saved = await this.#transaction(snapshotId!, mutator, options, fault);
    } catch (error) {
      await this.#back(fault);
      throw error;
    }
    await this.#back(fault);
    return saved;
  }

  async #transaction(
    snapshotId: string,
    mutator: SnapshotMutator,
    options: SaveSnapshotOptions,
    fault: Fault | undefined,
  ): Promise<string | null> {
    const { medium, versions, commits } = this.#backend;
    for (let attempt = 1; ; attempt++) {
      const version = versions.get(snapshotId);
      const answer = mutator(await medium.getSnapshot({ snapshotId }));
      await pause(this.#latency(fault));
      if (fault === 'rerun' && attempt === 1) continue;
      if (versions.get(snapshotId) !== version) continue;
      if (answer === null) return null;
      const scopes = options.scopes?.map(({ id, change }) => ({
        id,
        change: (record: ScopeRecord) => {
          if (fault === 'rerun') change(structuredClone(record));
          return change(record);
        },
      }));
      let before: SessionSnapshot | undefined;
      await medium.saveSnapshot(snapshotId, (current) => ((before = current), answer), {
        ...options,
        ...(scopes && { scopes }),
      });
      versions.set(snapshotId, (version ?? 0) + 1);
      commits.push({ before, after: { ...answer, snapshotId } });
      return snapshotId;
    }
  }

  /** The request. */
  async #under(fault: Fault | undefined): Promise<void> {
    if (this.#isCut) return never();
    await pause(this.#latency(fault));
    if (fault === 'refused') throw this.#error();
    const isLostOnTheWay = this.#isAsleep || ((this.#isCut || fault === 'hung') && this.#backend.random.next() < 0.5);
    if (isLostOnTheWay) return never();
  }

  /** The answer. */
  async #back(fault: Fault | undefined): Promise<void> {
    await pause(this.#latency(undefined));
    if (fault === 'hung' || this.#isCut) return never();
    if (fault === 'lost') throw this.#error();
  }

  #latency(fault: Fault | undefined): number {
    const { random } = this.#backend;
    return fault === 'slow' ? 200 + random.below(3000) : 1 + random.below(20);
  }

  #error(): Error {
    const status = this.#backend.random.pick(TRANSIENT);
    return status ? new GenkitError({ status, message: 'Try again.' }) : new Error('socket hang up');
  }

  get #isAsleep(): boolean {
    return Date.now() < this.#asleepUntil;
  }

  /** The fault of a call that begins now. */
  #fault(method: string, options: unknown, snapshotId?: string): Fault | undefined {
    const drawn = this.#backend.fault(method);
    const fault = this.#isAsleep ? 'hung' : drawn;
    if (!fault || fault === 'rerun') return fault;
    const call = (options as SaveSnapshotOptions).context?.['call'];
    const noted = this.faults.get(call) ?? [];
    this.faults.set(call, [...noted, { kind: fault, method, ...(snapshotId !== undefined && { snapshotId }) }]);
    return fault;
  }
}
