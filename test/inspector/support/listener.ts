import type { LiveEvents } from '../../../src/inspector/api.ts';
import { queryOf, type Visitor } from './open.ts';

type LiveEvent = { [K in keyof LiveEvents]: { name: K; data: LiveEvents[K] } }[keyof LiveEvents];

/** The events of `api/live`. */
export class Listener {
  readonly #gone = new AbortController();
  readonly #events: AsyncGenerator<LiveEvent>;

  constructor({ origin, cookie }: Visitor, asks: object) {
    const url = `${origin}/api/live?${queryOf(asks)}`;
    const answer = fetch(url, { headers: { cookie }, signal: this.#gone.signal });
    this.#events = eventsOf(answer);
  }

  /** The next event with a name. */
  async next<K extends keyof LiveEvents>(name: K): Promise<LiveEvents[K]> {
    for (;;) {
      const { value, done } = await this.#events.next();
      if (done) throw new Error(`The stream ended before '${name}' came.`);
      if (value.name === name) return value.data as LiveEvents[K];
    }
  }

  stop(): void {
    this.#gone.abort();
  }
}

async function* eventsOf(answer: Promise<Response>): AsyncGenerator<LiveEvent> {
  let text = '';
  for await (const piece of (await answer).body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      if (name !== undefined) yield { name, data: JSON.parse(data!) as unknown } as LiveEvent;
    }
  }
}
