import { AsyncLocalStorage } from 'node:async_hooks';
import { runInNewSpan } from 'genkit/tracing';
import { explained } from './failures.ts';

/** The documents that Firestore bills, and the traffic. */
export interface FirestoreUsage {
  /** Documents read, including those of listeners; a query without a result counts as one. */
  reads: number;
  /** Documents written. */
  writes: number;
  /** Documents removed. */
  deletes: number;
  /** Requests. One that several calls share counts for the first of them. */
  rpcs: number;
  /** Approximate bytes of the documents read. */
  bytesRead: number;
  /** Approximate bytes of the documents written. */
  bytesWritten: number;
}

const ZERO: FirestoreUsage = { reads: 0, writes: 0, deletes: 0, rpcs: 0, bytesRead: 0, bytesWritten: 0 };

/** A call of a store that runs, and what it has used so far. */
interface RunningCall {
  meter: Meter;
  usage: FirestoreUsage;
}

/** One for all stores: Node 20 never frees an `AsyncLocalStorage`, and calls each one for every promise of the process. */
const running = new AsyncLocalStorage<RunningCall>();

/** Counts the store's use of Firestore, in total and for each call, and makes every call a span of Genkit's tracing. */
export class Meter {
  /** The class of the store. */
  readonly owner: string;
  readonly #total: FirestoreUsage = { ...ZERO };

  constructor(owner: string) {
    this.owner = owner;
  }

  get total(): FirestoreUsage {
    return { ...this.#total };
  }

  add(usage: Partial<FirestoreUsage>): void {
    const call = running.getStore();
    for (const key of Object.keys(usage) as (keyof FirestoreUsage)[]) {
      this.#total[key] += usage[key]!;
      if (call?.meter === this) call.usage[key] += usage[key]!;
    }
  }

  /**
   * Runs one call of the store, `method`, in a span with its usage. Converts errors of Firestore.
   *
   * @param what Describes the call, as the beginning of an error message.
   */
  call<T>(method: string, what: string, work: () => Promise<T>): Promise<T> {
    const usage = { ...ZERO };
    return runInNewSpan({ metadata: { name: `${this.owner}.${method}` } }, async (_metadata, span) => {
      try {
        return await running.run({ meter: this, usage }, work);
      } catch (error) {
        throw explained(error, what);
      } finally {
        span.setAttributes({
          'firestore.billed_reads': usage.reads,
          'firestore.billed_writes': usage.writes,
          'firestore.billed_deletes': usage.deletes,
          'firestore.rpcs': usage.rpcs,
          'firestore.bytes_read': usage.bytesRead,
          'firestore.bytes_written': usage.bytesWritten,
        });
      }
    });
  }
}
