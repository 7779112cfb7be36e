import { setImmediate as nextMacrotask } from 'node:timers/promises';
import type { AgentInput } from 'genkit/beta';
import { reserveSnapshotId } from '../snapshot/ids.ts';

export interface TurnRequest {
  readonly input: AgentInput;
  /** Reserved when the input arrives, so that the id of the turn's snapshot is known before it runs. */
  readonly snapshotId: string;
  /** The input's message has been added to the session. */
  begun: boolean;
}

/**
 * Reads the caller's inputs ahead of the turns, so that a request to detach is noticed at once. After a detach no turn is handed out until
 * {@link startWaiting}. Inputs sent before the detach belong to the run; later ones do not.
 */
export class Intake implements AsyncIterable<AgentInput> {
  /** Resolves with the waiting turns when the caller detaches; otherwise stays pending. */
  readonly detached: Promise<readonly TurnRequest[]>;
  readonly #waiting: TurnRequest[] = [];
  #current: TurnRequest | undefined;
  #isHeld = false;
  #end: { error?: unknown } | undefined;
  #wake: () => void = () => {};
  #onFirst: (input?: AgentInput) => void = () => {};

  /**
   * @param onDetach Called as soon as the caller detaches.
   * @param requests Turns that were requested earlier.
   */
  constructor(inputs: AsyncIterable<AgentInput>, onDetach: () => void, requests: readonly TurnRequest[] = []) {
    this.#waiting.push(...requests);
    this.detached = new Promise((resolve) => {
      void this.#read(inputs[Symbol.asyncIterator](), onDetach, resolve);
    });
  }

  /** The turn that was handed out last, until the next one is requested. */
  get current(): TurnRequest | undefined {
    return this.#current;
  }

  /** The turns that were not handed out. */
  get waiting(): readonly TurnRequest[] {
    return this.#waiting;
  }

  /** Resolves with the first input; with `undefined` when the inputs end without one. Called before a turn is handed out. */
  first(): Promise<AgentInput | undefined> {
    if (this.#waiting.length > 0 || this.#end) return Promise.resolve(this.#waiting[0]?.input);
    return new Promise((resolve) => (this.#onFirst = resolve));
  }

  /** Whether the caller's inputs ended with this error. */
  hasFailedWith(error: unknown): boolean {
    return this.#end !== undefined && 'error' in this.#end && this.#end.error === error;
  }

  /** The turn that an input requests. An input from elsewhere gets a new turn. */
  requestFor(input: AgentInput): TurnRequest {
    return this.#current?.input === input ? this.#current : newRequest(input);
  }

  /** Lets the waiting turns run after a detach. */
  startWaiting(): void {
    this.#isHeld = false;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<AgentInput, void, undefined> {
    try {
      for (;;) {
        this.#current = undefined;
        while (this.#isHeld || (this.#waiting.length === 0 && !this.#end)) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        this.#current = this.#waiting.shift();
        if (this.#current) {
          yield this.#current.input;
          continue;
        }
        if (this.#end && 'error' in this.#end) throw this.#end.error;
        return;
      }
    } finally {
      this.#current = undefined;
    }
  }

  async #read(
    inputs: AsyncIterator<AgentInput>,
    onDetach: () => void,
    resolve: (waiting: readonly TurnRequest[]) => void,
  ): Promise<void> {
    try {
      for (let next = await inputs.next(); !next.done; next = await inputs.next()) {
        const { detach, ...input } = next.value;
        if (detach) {
          this.#isHeld = true;
          onDetach();
        }
        if (!detach || hasPayload(input)) this.#waiting.push(newRequest(input));
        this.#onFirst(this.#waiting[0]?.input);
        if (detach) {
          await this.#readSentTogether(inputs);
          this.#end = {};
          resolve([...this.#waiting]);
          return;
        }
        this.#wake();
      }
      this.#end = {};
    } catch (error) {
      this.#end = { error };
    }
    this.#onFirst();
    this.#wake();
  }

  /** Inputs that the caller sent together with the detach request arrive within a macrotask. */
  async #readSentTogether(inputs: AsyncIterator<AgentInput>): Promise<void> {
    const timeout = nextMacrotask(undefined);
    try {
      for (;;) {
        const next = await Promise.race([inputs.next(), timeout]);
        if (!next || next.done) return;
        const { detach: _again, ...input } = next.value;
        if (hasPayload(input)) this.#waiting.push(newRequest(input));
      }
    } catch {
      // An invalid input ends the inputs; those before it remain valid.
    }
  }
}

function newRequest(input: AgentInput): TurnRequest {
  return { input, snapshotId: reserveSnapshotId(), begun: false };
}

function hasPayload({ message, resume }: AgentInput): boolean {
  return Boolean(message ?? (resume?.respond?.length || resume?.restart?.length));
}
