/** How much is handed on at once, in bytes. A slow connection shows by the next piece that it is alive. */
const PIECE_BYTES = 64 * 1024;

/**
 * What the clients of a server have not taken yet of their streams. A turn can not be made to wait, so when all of it together exceeds the limit,
 * the stream with the longest backlog ends. A client that keeps up is never the one, however fast its turn writes.
 */
export class Backlog {
  readonly #maxChars: number;
  #chars = 0;
  readonly #streams = new Set<FrameStream>();

  /** @param maxChars The limit, in characters. The frame that exceeds it is still taken. */
  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  /** Before a frame is added to one of the streams. */
  makeRoom(): void {
    while (this.#chars > this.#maxChars) {
      this.#longest().endSlowClient();
    }
  }

  /** The backlog of `stream` has changed by so many characters. */
  change(stream: FrameStream, chars: number): void {
    this.#chars += chars;
    if (stream.unreadChars > 0) {
      this.#streams.add(stream);
    } else {
      this.#streams.delete(stream);
    }
  }

  /** A stream whose client asks for more only where there is no other. */
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
  /** Answers the last frame for a client that is too slow; `undefined`: its connection is broken, since it can ask for the stream again. */
  tooSlowFrame: () => string | undefined;
  /** Called when the client goes away, or is too slow. */
  onGone: () => void;
}

const encoder = new TextEncoder();

/** The frames of an answer, between the turn that writes them and the connection that takes them. */
export class FrameStream {
  readonly #options: FrameStreamOptions;
  #frames: string[] = [];
  #unreadChars = 0;
  /** What is left of the frames that were taken last. */
  #rest: Uint8Array | undefined;
  #state: 'open' | 'ended' | 'gone' | 'broken' = 'open';
  #isAsked = true;
  #wake: (() => void) | undefined;

  constructor(options: FrameStreamOptions) {
    this.#options = options;
  }

  /** How much waits to be taken, in characters. */
  get unreadChars(): number {
    return this.#unreadChars;
  }

  /** Whether the connection takes what comes: it waits, or is not there yet. */
  get isAsked(): boolean {
    return this.#isAsked;
  }

  write(frame: string): void {
    this.#options.backlog.makeRoom();
    // Room may have been made by ending this one.
    if (this.#state === 'open') {
      this.#push(frame);
    }
  }

  /** Writes the last frame. What comes after it is left out. */
  end(frame: string): void {
    this.write(frame);
    if (this.#state === 'open') {
      this.#state = 'ended';
    }
  }

  /** The client is gone. */
  cancel(): void {
    this.#close('gone');
  }

  /** Drops what waits; the stream ends with an error, or breaks. */
  endSlowClient(): void {
    const last = this.#options.tooSlowFrame();
    this.#close(last === undefined ? 'broken' : 'ended');
    if (last !== undefined) {
      // Does not count: there is nothing left by which this stream could make room.
      this.#frames.push(last);
    }
  }

  /**
   * Answers what waits, or comes next, a piece at a time; `undefined` at the end.
   *
   * @throws Error when the connection is to be broken.
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

  /** As many frames as fit into a piece, at least one where there is one. */
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
