import type { MessageData } from 'genkit';
import { invalidArgument } from '../../../errors.ts';
import { replaceTexts } from '../../../json/replace-texts.ts';
import type { MemoryFact, MemoryManagerOptions } from '../../types.ts';
import { withinTime } from '../../../store/parts/within-time.ts';

/** A placeholder of `genkitx-agents/privacy`. */
const NUMBERED = /\[([A-Z]{1,30}(?:_[A-Z]{1,30}){0,7})_\d{1,5}\]/g;

/** Members of a message's part, and of what it contains, have names of Genkit: `toolResponse`, `output`. */
const GENKIT_NAMES = 2;

/** Replaces personal values in a text. */
export type Redact = (text: string, options?: { label?: string }) => Promise<string>;

/**
 * The application's `redact`, within a time. Also removes the numbers of placeholders: in another session or text, a number stands for
 * another value.
 *
 * @param redact `undefined`: only the numbers are removed.
 */
export function redactor(redact: MemoryManagerOptions['redact'], timeoutMs: number): Redact {
  const answerOf = async (text: string, options: { label?: string }): Promise<string> => {
    if (!redact) return text;
    const answer = await withinTime('redact', timeoutMs, undefined, async () => redact(text, options));
    const redacted: unknown = typeof answer === 'string' ? answer : answer?.value;
    if (typeof redacted === 'string') return redacted;
    throw invalidArgument('redact must return the text, or an object with the text as value.');
  };
  return async (text, options = {}) => (await answerOf(text, options)).replaceAll(NUMBERED, '[$1]');
}

export async function redactMessage({ role, content }: MessageData, redact: Redact): Promise<MessageData> {
  const redacted = content.map(async (part) =>
    part.media ? part : redactJson(part, redact, ({ length }) => length < GENKIT_NAMES),
  );
  return { role, content: await Promise.all(redacted) };
}

/** The fact with its text, data and key redacted, and the names of its members as they are: a schema may ask for them. */
export async function redactFact<F extends MemoryFact>(fact: F, redact: Redact): Promise<F> {
  const { text, data, key } = fact;
  const given = { text, ...(data !== undefined && { data }), ...(key !== undefined && { key }) };
  return { ...fact, ...(await redactJson(given, redact)) };
}

/**
 * A value with its texts and numbers redacted.
 *
 * @param isKeptName Whether the names of the members at a path stay as they are. Default: all do.
 */
export function redactJson<T>(
  value: T,
  redact: Redact,
  isKeptName: (path: readonly (string | number)[]) => boolean = () => true,
): Promise<T> {
  return replaceTexts(value, async (text, { kind, path, label }) =>
    kind === 'name' && isKeptName(path) ? text : redact(text, label === undefined ? {} : { label }),
  );
}
