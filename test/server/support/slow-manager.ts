import {
  InMemoryStreamManager,
  type ActionStreamInput,
  type ActionStreamSubscriber,
  type StreamManager,
} from 'genkit/beta';

/** A slow stream manager: every operation takes time, and it records its subscribers. */
export class SlowManager implements StreamManager {
  readonly #inner = new InMemoryStreamManager();
  writes: string[] = [];
  subscribers = 0;
  fails: 'open' | 'write' | undefined;

  async open<S, O>(id: string): Promise<ActionStreamInput<S, O>> {
    await this.#delay('open');
    const input = await this.#inner.open<S, O>(id);
    return {
      write: async (chunk: S) => {
        await this.#delay('write');
        this.writes.push(String(chunk));
        await input.write(chunk);
      },
      done: async (output: O) => {
        await this.#delay();
        await input.done(output);
      },
      error: async (error: unknown) => {
        await this.#delay();
        await input.error(error);
      },
    };
  }

  async subscribe<S, O>(id: string, subscriber: ActionStreamSubscriber<S, O>) {
    await this.#delay();
    const { unsubscribe } = await this.#inner.subscribe(id, subscriber);
    this.subscribers += 1;
    let isThere = true;
    return {
      unsubscribe: () => {
        this.subscribers -= isThere ? 1 : 0;
        isThere = false;
        unsubscribe();
      },
    };
  }

  async #delay(what?: string): Promise<void> {
    await new Promise(setImmediate);
    if (what && what === this.fails) {
      throw new Error('The manager at 10.0.0.7 is down.');
    }
  }
}
