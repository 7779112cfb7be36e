import type { AgentInput } from 'genkit/beta';
import { reserveSnapshotId } from '../../snapshot/ids.ts';

/** A turn that was asked for. */
export interface TurnRequest {
  readonly input: AgentInput;
  /** Reserved when the input arrives: what the turn will be saved as is known before it runs. */
  readonly snapshotId: string;
  /** The input's message is in the session. */
  begun: boolean;
}

/**
 * Takes the caller's inputs as they come, ahead of the turns that work on them, so that a wish to detach is heard at once. From then on no
 * turn is handed out until {@link goOn}; what has been sent by that time still belongs to the run, anything later does not.
 */
export class Intake implements AsyncIterable<AgentInput> {
  /** Settles when the caller detaches, with the turns that wait; never when it does not. */
  readonly detached: Promise<readonly TurnRequest[]>;
  readonly #waiting: TurnRequest[] = [];
  #current: TurnRequest | undefined;
  #held = false;
  #end: { error?: unknown } | undefined;
  #wake: () => void = () => {};

  /**
   * @param onDetach Called as soon as the caller detaches.
   * @param requests Turns that were asked for earlier.
   */
  constructor(inputs: AsyncIterable<AgentInput>, onDetach: () => void, requests: readonly TurnRequest[] = []) {
    this.#waiting.push(...requests);
    this.detached = new Promise((resolve) => {
      void this.#read(inputs[Symbol.asyncIterator](), onDetach, resolve);
    });
  }

  /** The turn that was handed out last, until the next is asked for. */
  get current(): TurnRequest | undefined {
    return this.#current;
  }

  /** The turns that nobody took. */
  get waiting(): readonly TurnRequest[] {
    return this.#waiting;
  }

  /** The turn that an input asks for; one that did not come through here gets a turn as well. */
  requestFor(input: AgentInput): TurnRequest {
    return this.#current?.input === input ? this.#current : newRequest(input);
  }

  /** After a detach: the turns that wait may run. */
  goOn(): void {
    this.#held = false;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<AgentInput, void, undefined> {
    try {
      for (;;) {
        this.#current = undefined;
        while (this.#held || (this.#waiting.length === 0 && !this.#end)) {
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
          this.#held = true;
          onDetach();
        }
        if (!detach || hasPayload(input)) this.#waiting.push(newRequest(input));
        if (detach) {
          await this.#readWhatWasSent(inputs);
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
    this.#wake();
  }

  /** What the caller sent together with the wish to detach is here within a macrotask. */
  async #readWhatWasSent(inputs: AsyncIterator<AgentInput>): Promise<void> {
    const nothing = new Promise<undefined>((resolve) => {
      setImmediate(resolve, undefined);
    });
    try {
      for (;;) {
        const next = await Promise.race([inputs.next(), nothing]);
        if (!next || next.done) return;
        const { detach: _again, ...input } = next.value;
        if (hasPayload(input)) this.#waiting.push(newRequest(input));
      }
    } catch {
      // An input that is none ends the inputs; those before it stand.
    }
  }
}

function newRequest(input: AgentInput): TurnRequest {
  return { input, snapshotId: reserveSnapshotId(), begun: false };
}

function hasPayload({ message, resume }: AgentInput): boolean {
  return Boolean(message ?? (resume?.respond?.length || resume?.restart?.length));
}
