import type { ActionStreamInput, StreamManager } from 'genkit/beta';
import { invalidArgument, unavailable } from '../../../errors.ts';
import { copyJson } from '../../../json/value.ts';
import { redactText } from '../../rules/redact-text.ts';
import { redactValue } from '../../rules/redact-value.ts';
import type { Numbering } from '../../rules/types.ts';
import { checkRedacting, type RedactingOptions, type RedactingSettings } from '../options.ts';
import { runRules } from '../run-rules.ts';
import { sharedNumbers } from '../session-numbers.ts';
import { HeldText } from './held-text.ts';
import { chunksOf, dropPartialInputs, itemsOf, messageNameOf, slotsOf, type StreamItem } from './stream-items.ts';

/** The place that the error of a rule names. */
const STREAM = 'a kept stream';

/**
 * Wraps a stream manager, the `streamManager` of `agentHandler` and `agentRouter`, so that kept streams hold no value that a rule finds,
 * even if the value is divided among chunks. For this the end of a message's text is held back: as much as the longest value of the rules,
 * at most twice that, and never longer than until the message, the turn or the stream ends.
 *
 * - A client that stays connected gets the original at once. One that reconnects gets the kept stream, with placeholders.
 * - The number of a placeholder has five digits and is made from the value. It is not the number that the session uses.
 * - Partial inputs of tool requests, which some models stream, are not kept.
 * - `except` and `beforeModel` change nothing here.
 *
 * @throws `INVALID_ARGUMENT` for a wrong `manager`, and for missing or wrong options. A write throws `UNAVAILABLE` when a rule
 *   throws or takes too long; the server then closes the kept stream as failed, and the turn continues.
 * @example
 * import { InMemoryStreamManager } from 'genkit/beta';
 * import { piiRules, redactingStreams } from 'genkitx-agents/privacy';
 * const secret = process.env['PRIVACY_SECRET']!;
 * const streamManager = redactingStreams(new InMemoryStreamManager(), { rules: piiRules(), secret });
 */
export function redactingStreams(manager: StreamManager, options: RedactingOptions): StreamManager {
  const settings = checkRedacting('redactingStreams', options);
  if (typeof manager?.open !== 'function' || typeof manager.subscribe !== 'function') {
    throw invalidArgument("redactingStreams needs a stream manager, for example Genkit's InMemoryStreamManager.");
  }
  return {
    open: async <S, O>(streamId: string) => new RedactedStream<S, O>(await manager.open<S, O>(streamId), settings),
    subscribe: (streamId, callbacks) => manager.subscribe(streamId, callbacks),
  };
}

/** An item that waits, and how many texts of each name it has. */
interface WaitingItem {
  readonly item: StreamItem;
  readonly counts: ReadonlyMap<string, number>;
}

/** Ids are kept unchanged, because clients need them. The store refuses ids with findings. */
const IDS = ['snapshotId', 'sessionId', 'turnEnd/snapshotId', 'state/sessionId'].flatMap((id) => [
  `/${id}`,
  `/*/${id}`,
]);

class RedactedStream<S, O> implements ActionStreamInput<S, O> {
  readonly #input: ActionStreamInput<S, O>;
  readonly #settings: RedactingSettings;
  readonly #numbering: Numbering;
  /** The texts of the current message, by name. */
  readonly #texts = new Map<string, HeldText>();
  readonly #waiting: WaitingItem[] = [];
  #messageName: string | undefined;
  /** The last write. A caller may start the next one without waiting for it. */
  #last: Promise<unknown> = Promise.resolve();
  #isBroken = false;

  constructor(input: ActionStreamInput<S, O>, settings: RedactingSettings) {
    this.#input = input;
    this.#settings = settings;
    this.#numbering = sharedNumbers(settings.secrets[0]!).numbering;
  }

  write(chunk: S): Promise<void> {
    return this.#next(async (signal) => {
      for (const item of itemsOf(chunk)) await this.#add(item, signal);
      const isDue = [...this.#texts.values()].some((text) => text.isDue);
      if (isDue || this.#waiting.every(({ counts }) => counts.size === 0)) await this.#release(false, signal);
    });
  }

  done(output: O): Promise<void> {
    return this.#next(async (signal) => {
      await this.#release(true, signal);
      const items = itemsOf(output);
      for (const item of items) item.value = await this.#redacted(item.value, IDS, signal);
      await this.#input.done(chunksOf(items)[0] as O);
    });
  }

  error(error: unknown): Promise<void> {
    // Drops the waiting items: they were not searched, and the stream has failed.
    return this.#last.then(async () => this.#input.error(await this.#safeError(error, this.#deadlineSignal())));
  }

  #next(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const next = this.#last.then(() => {
      if (this.#isBroken) throw unavailable('A chunk before this one could not be kept, so the stream has a gap.');
      return work(this.#deadlineSignal());
    });
    this.#last = next.catch(() => (this.#isBroken = true));
    return next;
  }

  #deadlineSignal(): AbortSignal {
    return AbortSignal.timeout(this.#settings.timeoutMs);
  }

  async #add(item: StreamItem, signal: AbortSignal): Promise<void> {
    const name = messageNameOf(item);
    if (name !== undefined && name !== this.#messageName) {
      await this.#release(true, signal);
      this.#messageName = name;
    }
    dropPartialInputs(item);
    const except = slotsOf(item).map(({ pointer }) => pointer);
    if (!except.includes('')) item.value = await this.#redacted(item.value, [...except, ...IDS], signal);
    const counts = new Map<string, number>();
    for (const slot of slotsOf(item)) {
      const text = this.#texts.get(slot.name) ?? new HeldText(this.#settings.rules, this.#numbering);
      this.#texts.set(slot.name, text);
      text.add(slot);
      counts.set(slot.name, (counts.get(slot.name) ?? 0) + 1);
    }
    this.#waiting.push({ item, counts });
  }

  /** Writes the items up to a point that no value crosses. */
  async #release(isEnd: boolean, signal: AbortSignal): Promise<void> {
    for (const text of this.#texts.values()) {
      const search = async () => text.search(isEnd, signal).then(() => true);
      if (!(await runRules(this.#settings, STREAM, signal, search))) text.skipSearch();
    }
    const released = this.#waiting.splice(0, this.#releasable());
    for (const [name, text] of this.#texts) text.release(countOf(released, name));
    for (const chunk of chunksOf(released.map(({ item }) => item))) await this.#input.write(chunk as S);
    if (isEnd) this.#texts.clear();
  }

  /** How many of the items that wait may be written. */
  #releasable(): number {
    for (let count = this.#waiting.length; count > 0; count--) {
      const items = this.#waiting.slice(0, count);
      if ([...this.#texts].every(([name, text]) => text.isSafeAfter(countOf(items, name)))) return count;
    }
    return 0;
  }

  async #redacted(value: unknown, except: readonly string[], signal: AbortSignal): Promise<unknown> {
    const { rules } = this.#settings;
    const redact = () => redactValue(value, rules, { numbering: this.#numbering, except, signal });
    return ((await runRules(this.#settings, STREAM, signal, redact)) ?? { value }).value;
  }

  async #safeError(error: unknown, signal: AbortSignal): Promise<unknown> {
    const safe = new Error('The stream ended with an error.');
    try {
      const { rules } = this.#settings;
      const { name = 'Error', message = String(error) } = (error ?? {}) as Partial<Error>;
      const redact = () => redactText(message, rules, { numbering: this.#numbering, signal });
      const text = (await runRules({ onFailure: 'refuse' }, STREAM, signal, redact))!.value;
      const members = typeof error === 'object' && error !== null ? copyJson({ ...error }) : {};
      Object.assign(safe, await this.#redacted(members, [], signal), { name, message: text });
    } catch {
      // A rule failed, or a member of the error is not JSON.
    }
    // The real stack begins with the original message, and clients don't need it.
    return Object.assign(safe, { stack: `${safe.name}: ${safe.message}` });
  }
}

function countOf(items: readonly WaitingItem[], name: string): number {
  return items.reduce((sum, { counts }) => sum + (counts.get(name) ?? 0), 0);
}
