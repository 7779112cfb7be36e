import type { MessageData, Part } from 'genkit';
import { meter } from './message-log.ts';

/** All line ends of Unicode. */
const LINE_END = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** Maximum characters of a tool's input or output. */
const MAX_TOOL_CHARACTERS = 2_000;
const MAX_TEXT_CHARACTERS = 20_000;

/** Unicode tags, and signs that change the direction of text. They hide text from a person but not from a model. */
const HIDDEN = /[\u{E0000}-\u{E007F}\u202A-\u202E\u2066-\u2069]/gu;

/** The text as a person sees it. */
export function visibleText(text: string): string {
  return text.replaceAll(HIDDEN, '');
}

/** The {@link visibleText} with a mark at the beginning of each line. */
export function markedLines(text: string): string {
  return visibleText(text)
    .split(LINE_END)
    .map((line) => `| ${line}`)
    .join('\n');
}

/** The text of a message, without its tools and media. */
export function textOf({ content }: MessageData): string {
  return content.map(({ text }) => text ?? '').join('');
}

/** The parts of a message as text for a model that reads about the conversation. */
export function messageText({ content }: MessageData): string {
  meter.messages++;
  return content.map(partText).filter(Boolean).join('\n');
}

function partText(part: Part): string {
  if (part.text !== undefined) return shorten(part.text, MAX_TEXT_CHARACTERS);
  if (part.toolRequest) return `[calls ${part.toolRequest.name}: ${toolText(part.toolRequest.input)}]`;
  if (part.toolResponse) return `[${part.toolResponse.name} answers: ${toolText(part.toolResponse.output)}]`;
  if (part.media) return `[media: ${part.media.contentType ?? 'unknown type'}]`;
  if (part.data !== undefined) return toolText(part.data);
  return '';
}

function toolText(value: unknown): string {
  return shorten(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''), MAX_TOOL_CHARACTERS);
}

function shorten(text: string, most: number): string {
  return text.length > most ? `${beginning(text, most)} [${text.length - most} more characters]` : text;
}

/** The first characters of a text. Never ends with half of a surrogate pair. */
export function beginning(text: string, most: number): string {
  return text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '');
}
