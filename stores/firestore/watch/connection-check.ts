import type { TenantDatabase } from '../tenant-database.ts';

/** How often a document is read while there are watchers, in ms. */
const INTERVAL_MS = 15_000;
/** The interval while the database does not answer; such a read is not billed. */
const OUTAGE_INTERVAL_MS = 500;

/**
 * Detects an outage of the database and its end. Firestore's client does not report an outage to its listeners: it retries after increasing
 * pauses, and finally gives up. So the listeners are set up again as soon as the database answers.
 */
export class ConnectionCheck {
  readonly #tenant: TenantDatabase;
  readonly #onReturn: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isDown = false;
  #isEnded = false;

  constructor(tenant: TenantDatabase, onReturn: () => void) {
    this.#tenant = tenant;
    this.#onReturn = onReturn;
    this.#schedule();
  }

  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (this.#isEnded) return;
    this.#timer = setTimeout(() => void this.#check(), this.#isDown ? OUTAGE_INTERVAL_MS : INTERVAL_MS);
    this.#timer.unref();
  }

  async #check(): Promise<void> {
    const { pointers, database } = this.#tenant;
    try {
      await database.get(pointers.doc('~connection'), ['v']);
      if (this.#isDown && !this.#isEnded) this.#onReturn();
      this.#isDown = false;
    } catch {
      this.#isDown = true;
    }
    this.#schedule();
  }
}
