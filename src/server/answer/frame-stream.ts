/** Size of one piece, in bytes. A slow connection shows that it is alive by taking the next piece. */
const PIECE_BYTES = 64 * 1024;

/**
 * The unread frames of all streams of a server. A turn cannot be made to wait, so when all frames together exceed the limit, the stream with the
 * longest backlog ends. The stream of a client that keeps up is not ended, however fast its turn writes.
 */
export class Backlog {
  readonly #maxChars: number;
  #chars = 0;
  readonly #streams = new Set<FrameStream>();

  /** @param maxChars The limit, in characters. The frame that exceeds it is still accepted. */
  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** Called before a frame is added to one of the streams. */
  makeRoom(): void {
    while (this.#chars > this.#maxChars) {
      this.#longest().endSlowClient();
    }
  }

  /** Called when the backlog of `stream` has changed by `chars` characters. */
  change(stream: FrameStream, chars: number): void {
    this.#chars += chars;
    if (stream.unreadChars > 0) {
      this.#streams.add(stream);
    } else {
      this.#streams.delete(stream);
    }
  }

  /** Prefers a stream whose client is not waiting for data. */
  #longest(): FrameStream {
    return [...this.#streams].reduce((longest, stream) => {
      const isLonger = stream.isAsked === longest.isAsked ? stream.unreadChars > longest.unreadChars : longest.isAsked;
      return isLonger ? stream : longest;
    });
  }
}

/** Options of {@link FrameStream}. */
export interface FrameStreamOptions {
  backlog: Backlog;
  /** Returns the last frame for a client that is too slow; `undefined`: its connection is closed, because it can request the stream again. */
  tooSlowFrame: () => string | undefined;
  /** Called when the client disconnects or is too slow. */
  onGone: () => void;
}

const encoder = new TextEncoder();

/** The frames of an answer, between the turn that writes them and the connection that takes them. */
export class FrameStream {
  readonly #options: FrameStreamOptions;
  #frames: string[] = [];
  #unreadChars = 0;
  /** The rest of the frames that were taken last. */
  #rest: Uint8Array | undefined;
  #state: 'open' | 'ended' | 'gone' | 'broken' = 'open';
  #isAsked = true;
  #wake: (() => void) | undefined;

  constructor(options: FrameStreamOptions) {
    this.#options = options;
  }

  /** The backlog, in characters. */
  get unreadChars(): number {
    return this.#unreadChars;
  }

  /** Whether the connection takes new frames: it waits for one, or is not open yet. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  write(frame: string): void {
    this.#options.backlog.makeRoom();
    // This stream may have been ended to make room.
    if (this.#state === 'open') {
      this.#push(frame);
    }
  }

  /** Writes the last frame. Later frames are dropped. */
  end(frame: string): void {
    this.write(frame);
    if (this.#state === 'open') {
      this.#state = 'ended';
    }
  }

  /** Called when the client has disconnected. */
  cancel(): void {
    this.#close('gone');
  }

  /** Drops the backlog; the stream ends with an error, or its connection is closed. */
  endSlowClient(): void {
    const last = this.#options.tooSlowFrame();
    this.#close(last === undefined ? 'broken' : 'ended');
    if (last !== undefined) {
      // Not counted in the backlog: this stream has nothing more to drop.
      this.#frames.push(last);
    }
  }

  /**
   * Returns the next piece, as soon as there is one; `undefined` at the end.
   *
   * @throws Error when the connection is to be closed without an end.
   */
  async take(): Promise<Uint8Array | undefined> {
    this.#isAsked = true;
    if (!this.#rest && this.#frames.length === 0 && this.#state === 'open') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#isAsked = false;
    if (this.#state === 'broken') {
      throw new Error('The client was too slow for its stream.');
    }
    const bytes = this.#rest ?? encoder.encode(this.#takeFrames());
    this.#rest = bytes.byteLength > PIECE_BYTES ? bytes.subarray(PIECE_BYTES) : undefined;
    return bytes.byteLength === 0 ? undefined : bytes.subarray(0, PIECE_BYTES);
  }

  /** As many frames as fit into a piece, but at least one if there is one. */
  #takeFrames(): string {
    let count = 0;
    let chars = 0;
    while (count < this.#frames.length && chars < PIECE_BYTES) {
      chars += this.#frames[count]!.length;
      count += 1;
    }
    this.#count(-Math.min(chars, this.#unreadChars));
    return this.#frames.splice(0, count).join('');
  }

  #push(frame: string): void {
    this.#frames.push(frame);
    this.#count(frame.length);
    this.#wake?.();
    this.#wake = undefined;
  }

  #close(state: 'ended' | 'gone' | 'broken'): void {
    this.#state = state;
    this.#frames = [];
    this.#rest = undefined;
    this.#count(-this.#unreadChars);
    this.#wake?.();
    this.#wake = undefined;
    this.#options.onGone();
  }

  #count(chars: number): void {
    this.#unreadChars += chars;
    this.#options.backlog.change(this, chars);
  }
}
