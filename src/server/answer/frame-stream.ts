/** Longest piece, in characters. Frames are sent in pieces, because a slow connection shows that it is alive by taking the next piece. */
export const PIECE_CHARS = 64 * 1024;

/**
 * Counts the unread frames of all answers of a server. Turns can't wait for their clients. So when all frames together exceed the limit,
 * the stream with the largest product of unread characters and time since its client last read is ended. A client that keeps up is not
 * ended for slow ones, except if its turn alone writes more than the limit at once.
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
      const slowest = this.#slowest();
      if (!slowest) {
        return;
      }
      slowest.endSlowClient();
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

  /** The stream to end. Streams whose clients wait for the next frame are left out. */
  #slowest(): FrameStream | undefined {
    const now = performance.now();
    const weightOf = ({ unreadChars, takenAt }: FrameStream) => unreadChars * (1 + now - takenAt);
    return [...this.#streams]
      .filter(({ isReading }) => !isReading)
      .reduce<FrameStream | undefined>(
        (slowest, stream) => (slowest && weightOf(slowest) >= weightOf(stream) ? slowest : stream),
        undefined,
      );
  }
}

/** Options of {@link FrameStream}. */
export interface FrameStreamOptions {
  backlog: Backlog;
  /** Returns the last frame for a client that is too slow. `undefined` closes its connection: it can request the stream again. */
  tooSlowFrame?: () => string | undefined;
  /** Called when the client disconnects or is too slow. */
  onGone?: () => void;
}

/** The queue of an answer's frames: a turn writes them, a connection takes them. */
export class FrameStream {
  readonly #options: FrameStreamOptions;
  #frames: string[] = [];
  #unreadChars = 0;
  /** How many characters of the first frame have been taken. A frame counts as unread until all of it is taken. */
  #taken = 0;
  #state: 'open' | 'ended' | 'gone' | 'broken' = 'open';
  #isReading = true;
  #takenAt = performance.now();
  #wake: (() => void) | undefined;

  constructor(options: FrameStreamOptions) {
    this.#options = options;
  }

  /** The backlog, in characters. */
  get unreadChars(): number {
    return this.#unreadChars;
  }

  /** Whether the connection takes new frames: it waits for one, or is not open yet. */
  get isReading(): boolean {
    return this.#isReading;
  }

  /** When the connection last read, by `performance.now()`. */
  get takenAt(): number {
    return this.#takenAt;
  }

  /** Called when the connection is open. From then on, `isReading` is true only while the connection waits in `take`. */
  open(): void {
    this.#isReading = false;
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

  /** Drops the backlog and ends the stream with an error, or closes its connection. */
  endSlowClient(): void {
    // The rest of a frame that was taken in part comes first: the error can only follow a whole frame.
    const rest = this.#taken === 0 ? '' : this.#frames[0]!.slice(this.#taken);
    const last = rest.length > PIECE_CHARS ? undefined : this.#options.tooSlowFrame?.();
    this.#close(last === undefined ? 'broken' : 'ended');
    if (last !== undefined) {
      // Not counted in the backlog: this stream has nothing more to drop.
      this.#frames.push(rest + last);
    }
  }

  /**
   * Returns the next piece, as soon as there is one; `undefined` at the end.
   *
   * @throws Error when the connection is to be closed without an end.
   */
  async take(): Promise<string | undefined> {
    this.#isReading = true;
    if (this.#frames.length === 0 && this.#state === 'open') {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#isReading = false;
    this.#takenAt = performance.now();
    if (this.#state === 'broken') {
      throw new Error('The client read its stream too slowly.');
    }
    return this.#takePart() ?? (this.#takeFrames() || undefined);
  }

  /** The next part of a frame that is longer than a piece; `undefined` when no such frame is next. */
  #takePart(): string | undefined {
    const [frame = ''] = this.#frames;
    if (frame.length - this.#taken <= PIECE_CHARS) {
      return undefined;
    }
    // Does not cut a surrogate pair.
    const isPair = frame.codePointAt(this.#taken + PIECE_CHARS - 1)! > 0xffff;
    const start = this.#taken;
    this.#taken += isPair ? PIECE_CHARS - 1 : PIECE_CHARS;
    return frame.slice(start, this.#taken);
  }

  /** As many frames as fit into a piece, but at least one if there is one. */
  #takeFrames(): string {
    let count = 0;
    let chars = 0;
    while (count < this.#frames.length && chars < PIECE_CHARS) {
      chars += this.#frames[count]!.length;
      count += 1;
    }
    this.#count(-Math.min(chars, this.#unreadChars));
    const text = this.#frames.splice(0, count).join('');
    const start = this.#taken;
    this.#taken = 0;
    return text.slice(start);
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
    this.#taken = 0;
    this.#count(-this.#unreadChars);
    this.#wake?.();
    this.#wake = undefined;
    this.#options.onGone?.();
  }

  #count(chars: number): void {
    this.#unreadChars += chars;
    this.#options.backlog.change(this, chars);
  }
}
