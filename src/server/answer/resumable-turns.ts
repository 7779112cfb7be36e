import type { ActionContext } from 'genkit';
import type { ActionStreamInput, StreamManager } from 'genkit/beta';
import { logger } from 'genkit/logging';
import { withinTime } from '../../store/parts/within-time.ts';
import { frames, noStreamAnswer, streamAnswer, type Answer } from './answer.ts';
import { FrameStream, type Backlog } from './frame-stream.ts';
import { KeptStream } from './kept-stream.ts';
import type { ResumableSettings, ServerSettings } from '../options.ts';
import { ConnectedClients } from './connected-clients.ts';
import { Refusal } from './refusal.ts';
import { toSafeError } from './error-for-caller.ts';
import { describeOwner, keyOfStream } from './stream-key.ts';

/** Genkit's header for the id of a stream, in requests and answers. */
export const STREAM_ID_HEADER = 'x-genkit-stream-id';

/** The caller that requests a stream, and the agent. */
export interface StreamCaller {
  /** The path of the agent. */
  agent: string;
  context: ActionContext;
}

/** A turn whose stream is kept. */
export interface KeptTurn {
  id: string;
  write(frame: string): void;
  /** Ends the turn with this frame. */
  end(frame: string): void;
  /** Called when the client that started the turn has disconnected. */
  leave(): void;
}

type Limits = Pick<ServerSettings, 'timeoutMs' | 'maxUnreadChars'> & { backlog: Backlog };

/** The turns that clients can reconnect to. */
export class ResumableTurns {
  readonly #manager: StreamManager;
  readonly #graceMs: number;
  readonly #streamOwner: ResumableSettings['streamOwner'];
  readonly #limits: Limits;
  /** The running turns of this process, by the keys of their streams. */
  readonly #running = new Map<string, ConnectedClients>();

  constructor({ streamManager, reconnectWithinMs, streamOwner }: ResumableSettings, limits: Limits) {
    this.#limits = limits;
    this.#manager = streamManager;
    this.#graceMs = reconnectWithinMs;
    this.#streamOwner = streamOwner;
  }

  /**
   * Starts to keep a turn's stream. If the stream can't be kept, the turn runs without it.
   *
   * @param abortTurn Called when no client has been connected for the grace time, or when the caller aborts the turn.
   * @throws Refusal 503 when the manager does not answer within `timeoutMs`.
   */
  async open(caller: StreamCaller, abortTurn: () => void): Promise<KeptTurn | undefined> {
    const id = globalThis.crypto.randomUUID();
    try {
      const key = (await this.#keyOf(id, caller))!;
      const stream = new KeptStream(await this.#openAt(key), this.#limits.maxUnreadChars, warnOfLoss);
      const clients = new ConnectedClients(this.#graceMs, abortTurn);
      const leave = clients.add();
      this.#running.set(key, clients);
      return {
        id,
        write: (frame) => stream.write(frame),
        end: (frame) => {
          this.#running.delete(key);
          clients.end();
          stream.end(frame);
        },
        leave,
      };
    } catch (error) {
      if (error instanceof Refusal) {
        throw error;
      }
      warnOfLoss(error);
      return undefined;
    }
  }

  #openAt(key: string): Promise<ActionStreamInput<string, string>> {
    return this.#inTime(async (signal) => {
      const input = await this.#manager.open<string, string>(key);
      // A stream that opens late is closed: no turn writes to it.
      if (signal.aborted) await input.error(new Error('The turn did not wait for its stream.'));
      return input;
    });
  }

  /** @throws Refusal 503 when the manager does not answer within `timeoutMs`. */
  #inTime<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { timeoutMs } = this.#limits;
    const message = `The stream manager did not answer within ${timeoutMs} ms. Send the request again.`;
    return withinTime(() => new Refusal(503, 'UNAVAILABLE', message), timeoutMs, undefined, call);
  }

  /**
   * Answers with the stream from its beginning, followed by new frames. The answer is 204 when there is no such stream, or when it belongs
   * to another caller.
   *
   * @param signal Aborted when the client disconnects.
   * @throws Refusal 503 when the manager does not answer within `timeoutMs`.
   */
  async resume(id: string, caller: StreamCaller, signal: AbortSignal): Promise<Answer> {
    const key = await this.#findKey(id, caller);
    if (key === undefined) {
      return noStreamAnswer();
    }
    const leave = this.#running.get(key)?.add() ?? (() => {});
    let unsubscribe = () => {};
    let isOver = false;
    const stop = () => {
      isOver = true;
      signal.removeEventListener('abort', stop);
      leave();
      unsubscribe();
    };
    const { backlog } = this.#limits;
    const stream = new FrameStream({ backlog, onGone: stop });
    const finish = (frame: string) => {
      stream.end(frame);
      stop();
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      const subscribe = async () => {
        const subscription = await this.#manager.subscribe<string, string>(key, {
          onChunk: (frame) => stream.write(frame),
          onDone: finish,
          onError: (error: unknown) => finish(frames.error(toSafeError(streamError(error)))),
        });
        unsubscribe = () => subscription.unsubscribe();
        if (isOver || signal.aborted) {
          stop();
        }
      };
      await this.#inTime(subscribe);
      return streamAnswer(stream, { [STREAM_ID_HEADER]: id });
    } catch (error) {
      stop();
      if ((error as { status?: unknown } | undefined)?.status === 'NOT_FOUND') {
        return noStreamAnswer();
      }
      throw error;
    }
  }

  /** Aborts a running turn of this process. Returns whether there is one. */
  async abort(id: string, caller: StreamCaller): Promise<boolean> {
    const key = await this.#findKey(id, caller);
    const clients = key === undefined ? undefined : this.#running.get(key);
    clients?.abort();
    return clients !== undefined;
  }

  /** The key of a stream; `undefined` for an invalid id and for a context without an owner. */
  #findKey(id: string, caller: StreamCaller): Promise<string | undefined> {
    // No stream was kept for a context without an owner.
    return this.#keyOf(id, caller).catch(() => undefined);
  }

  async #keyOf(id: string, { agent, context }: StreamCaller): Promise<string | undefined> {
    return keyOfStream(id, agent, describeOwner(context, this.#streamOwner));
  }
}

/** The error for a client when the stream manager fails. The turn may still succeed: its own errors are frames of the stream. */
function streamError(cause: unknown): unknown {
  return (cause as { status?: unknown } | undefined)?.status === 'DEADLINE_EXCEEDED'
    ? new Refusal(
        504,
        'DEADLINE_EXCEEDED',
        'The turn sent nothing more in time. Request the stream again, or read its session.',
      )
    : new Refusal(503, 'UNAVAILABLE', 'The rest of the stream is lost. The session has the outcome of the turn.');
}

function warnOfLoss(error: unknown): void {
  logger.warn({
    message:
      'The stream of a turn could not be stored, so a client cannot reconnect to it. ' +
      'If the context is not plain JSON, set "streamOwner".',
    error,
  });
}
