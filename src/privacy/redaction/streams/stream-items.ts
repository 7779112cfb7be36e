import { membersOf } from '../../../json/fault.ts';
import { formatPointer } from '../../../json/pointer.ts';

/** A text of an item that may continue in the next items. */
export interface TextSlot {
  /** Pieces of one text have the same name: `text`, `reasoning`. */
  readonly name: string;
  /** Its place in the value. */
  readonly pointer: string;
  readonly text: string;
  readonly replace: (text: string) => void;
}

/** One value of a stream: a chunk, or a frame of a chunk that has several. */
export interface StreamItem {
  /** May be changed. */
  value: unknown;
  /** The text before the value in a frame of server-sent events, for example `data: `. `undefined` for other chunks. */
  readonly prefix: string | undefined;
}

/** A frame of server-sent events, as this package's servers and Genkit's write them. */
const FRAME = /^(data: |error: )(.*)$/s;
const FRAME_END = '\n\n';

/** The values of a chunk, as JSON copies. A text without frames is one value. */
export function itemsOf(chunk: unknown): StreamItem[] {
  if (typeof chunk !== 'string') {
    const text = JSON.stringify(chunk) as string | undefined;
    return [{ value: text === undefined ? null : JSON.parse(text), prefix: undefined }];
  }
  return framesOf(chunk) ?? [{ value: chunk, prefix: undefined }];
}

function framesOf(text: string): StreamItem[] | undefined {
  if (!text.endsWith(FRAME_END)) return undefined;
  const items: StreamItem[] = [];
  for (const frame of text.slice(0, -FRAME_END.length).split(FRAME_END)) {
    const match = FRAME.exec(frame);
    if (!match) return undefined;
    try {
      items.push({ value: JSON.parse(match[2]!), prefix: match[1]! });
    } catch {
      return undefined;
    }
  }
  return items;
}

/** The chunks for the items. Successive frames become one chunk of text. */
export function chunksOf(items: readonly StreamItem[]): unknown[] {
  const chunks: unknown[] = [];
  let isText = false;
  for (const { value, prefix } of items) {
    const chunk = prefix === undefined ? value : `${prefix}${JSON.stringify(value)}${FRAME_END}`;
    if (isText && prefix !== undefined) chunks[chunks.length - 1] = `${String(chunks.at(-1))}${String(chunk)}`;
    else chunks.push(chunk);
    isText = prefix !== undefined;
  }
  return chunks;
}

type Members = Record<string, unknown>;

/** A piece of the current message. */
interface MessageChunk {
  readonly role: unknown;
  readonly index: unknown;
  readonly content: readonly unknown[];
  /** Its place in the value. */
  readonly path: string[];
}

/** The texts of an item that may continue in the next items: those of the model's message, or the item if it is a text. */
export function slotsOf(item: StreamItem): TextSlot[] {
  if (typeof item.value === 'string' && item.prefix === undefined) {
    const replace = (text: string) => (item.value = text);
    return [{ name: 'text', pointer: '', text: item.value, replace }];
  }
  const message = messageOf(item);
  if (!message) return [];
  const { content, path } = message;
  return content.flatMap((part, i) =>
    ['text', 'reasoning'].flatMap((name): TextSlot[] => {
      const text = membersOf(part)[name];
      if (typeof text !== 'string') return [];
      const replace = (redacted: string) => ((part as Members)[name] = redacted);
      return [{ name, pointer: formatPointer([...path, 'content', i, name]), text, replace }];
    }),
  );
}

/** Names the message of an item; another name ends the message before. `undefined`: the item has no message and ends none. */
export function messageNameOf(item: StreamItem): string | undefined {
  const chunk = chunkOf(item);
  if (chunk.value['turnEnd'] !== undefined) return 'end of a turn';
  const message = messageOf(item);
  return message && `${String(message.role)} ${String(message.index)}`;
}

/** Removes the inputs of unfinished tool requests: rules can't find values that are cut off. */
export function dropPartialInputs(item: StreamItem): void {
  for (const part of messageOf(item)?.content ?? []) {
    const request = membersOf(membersOf(part)['toolRequest']);
    if (request['partial'] === true) delete request['input'];
  }
}

/** The chunk of an agent or a model, which a frame has in `message`. */
function chunkOf({ value, prefix }: StreamItem): { value: Members; path: string[] } {
  const members = membersOf(value);
  return prefix === undefined
    ? { value: members, path: [] }
    : { value: membersOf(members['message']), path: ['message'] };
}

/** The message chunk of an item, from an agent or directly from a model. */
function messageOf(item: StreamItem): MessageChunk | undefined {
  const { value, path } = chunkOf(item);
  const isOfAgent = value['modelChunk'] !== undefined;
  const { role, index, content } = isOfAgent ? membersOf(value['modelChunk']) : value;
  if (!Array.isArray(content)) return undefined;
  return { role, index, content, path: isOfAgent ? [...path, 'modelChunk'] : path };
}
