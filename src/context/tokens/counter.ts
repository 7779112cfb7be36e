import type { MessageData, Part } from 'genkit';
import { causedBy, errorMessage, invalidArgument } from '../../errors.ts';
import { meter } from '../../session/log/message-log.ts';
import { logRejection } from '../../store/parts/notify.ts';

/** Tokens of a message besides its content: its role, and the marks around it. */
const MESSAGE_TOKENS = 4;

/**
 * Tokens of a media part by the beginning of its content type. Providers count pixels, pages and seconds, which a part does not name, so
 * these are typical values: an image of about one megapixel, ten pages, a minute of sound, a minute of film.
 */
const MEDIA_TOKENS: readonly (readonly [type: string, tokens: number])[] = [
  ['image/', 1_100],
  ['application/pdf', 5_000],
  ['audio/', 2_000],
  ['video/', 16_000],
  ['', 1_000],
];

/** Counts messages by their parts. A part is counted once, then remembered; Genkit copies messages, but not their parts. */
export class TokenCounter {
  readonly #estimate: (text: string) => number;
  readonly #known = new WeakMap<Part, number>();
  #lastJson = { json: '', tokens: 0 };

  constructor(estimate: (text: string) => number) {
    this.#estimate = estimate;
  }

  /** Estimated tokens, before they are corrected for a model. */
  message({ content }: MessageData): number {
    let tokens = MESSAGE_TOKENS;
    let isKnown = true;
    for (const part of content) {
      let count = this.#known.get(part);
      if (count === undefined) {
        isKnown = false;
        count = this.#part(part);
        this.#known.set(part, count);
      }
      tokens += count;
    }
    if (!isKnown) meter.messages++;
    return tokens;
  }

  text(text: string): number {
    if (text === '') return 0;
    const tokens: unknown = this.#estimated(text);
    if (typeof tokens === 'number' && tokens >= 0 && tokens < Infinity) return tokens;
    const failure = 'countTokens of a context window must answer a number of tokens, and no promise.';
    logRejection(tokens, failure);
    throw invalidArgument(failure);
  }

  #estimated(text: string): unknown {
    try {
      return this.#estimate(text);
    } catch (error) {
      throw causedBy(invalidArgument(`countTokens of a context window threw: ${errorMessage(error)}`), error);
    }
  }

  /** Estimated tokens of a value as JSON. Remembers the last value, because consecutive model calls mostly have the same tools. */
  json(value: unknown): number {
    const json = jsonOf(value);
    if (json !== this.#lastJson.json) this.#lastJson = { json, tokens: this.text(json) };
    return this.#lastJson.tokens;
  }

  #part(part: Part): number {
    const { text, reasoning, media, toolRequest, toolResponse, data, custom } = part;
    let tokens = 0;
    if (text !== undefined) tokens += this.text(text);
    if (reasoning !== undefined) tokens += this.text(reasoning);
    if (media !== undefined) tokens += mediaTokens(media);
    if (toolRequest !== undefined) tokens += this.text(toolRequest.name) + this.text(jsonOf(toolRequest.input));
    if (toolResponse !== undefined) {
      tokens += this.text(toolResponse.name) + this.text(jsonOf(toolResponse.output));
      const { content } = toolResponse as { content?: unknown };
      if (Array.isArray(content)) for (const each of content as Part[]) tokens += this.#part(each);
    }
    if (data !== undefined) tokens += this.text(jsonOf(data));
    if (custom !== undefined) tokens += this.text(jsonOf(custom));
    return tokens;
  }
}

function mediaTokens({ contentType, url }: { contentType?: string | undefined; url: string }): number {
  const type = contentType ?? /^data:([^;,]*)/.exec(url)?.[1] ?? '';
  return MEDIA_TOKENS.find(([start]) => type.startsWith(start))![1];
}

/** JSON text; empty for a value that JSON can't hold, which can't be sent either. */
function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '';
  }
}
