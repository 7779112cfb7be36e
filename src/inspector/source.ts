import type { ActionContext } from 'genkit';
import type { SessionStore } from 'genkit/beta';
import { failedPrecondition, notFound, quote } from '../errors.ts';
import { checkLookup } from '../store/check-lookup.ts';
import { capabilitiesOf, type SessionSnapshot, type SnapshotStore, type StoreCapabilities } from '../store/contract.ts';
import type { InspectorOptions } from './options.ts';

/** A snapshot for reading only: its state may be the store's own. */
export type ReadSnapshot = SessionSnapshot;

/** The data of the inspector, in one tenant. */
export class Source {
  readonly options: InspectorOptions;
  readonly can: Readonly<StoreCapabilities>;
  /** Passed to every call. */
  readonly caller: { readonly context?: ActionContext };
  readonly #store: SessionStore;

  constructor(options: InspectorOptions, tenant?: string) {
    this.options = options;
    this.#store = options.store;
    this.can = capabilitiesOf(options.store);
    const { context } = options;
    const callContext = typeof context === 'function' ? context(tenant) : context;
    this.caller = callContext ? { context: callContext } : {};
  }

  /**
   * The store, for methods that only some stores have.
   *
   * @throws `FAILED_PRECONDITION` when it lacks the capability.
   */
  having(capability: keyof StoreCapabilities): SnapshotStore {
    if (this.can[capability]) return this.#store as SnapshotStore;
    throw failedPrecondition(
      `This needs capabilities.${capability}, which the store does not have. Move its data with copySessions to one that has it.`,
    );
  }

  /** The store, for methods that every store has. */
  get store(): SessionStore {
    return this.#store;
  }

  /** Reads a snapshot, frozen. One request. */
  async read(lookup: { snapshotId?: string; sessionId?: string }): Promise<ReadSnapshot | undefined> {
    const asked = { ...lookup, ...this.caller };
    checkLookup(asked);
    return this.#store.getSnapshot({ ...asked, frozen: true } as typeof asked);
  }

  /**
   * Reads a snapshot, frozen. One request.
   *
   * @throws `NOT_FOUND`
   */
  async mustRead(lookup: { snapshotId?: string; sessionId?: string }): Promise<ReadSnapshot> {
    const snapshot = await this.read(lookup);
    if (snapshot) return snapshot;
    const { snapshotId, sessionId = '' } = lookup;
    throw notFound(
      snapshotId === undefined
        ? `There is no session ${quote(sessionId)}.`
        : `There is no snapshot ${quote(snapshotId)}.`,
    );
  }

  /** Reads a snapshot, without its state if the store can do that. One request. */
  async readMetadata(lookup: { snapshotId?: string; sessionId?: string }): Promise<ReadSnapshot | undefined> {
    if (!this.can.metadata) return this.read(lookup);
    return this.having('metadata').getSnapshotMetadata({ ...lookup, ...this.caller });
  }
}
