import type { MessageData } from 'genkit';
import { invalidArgument } from '../../../errors.ts';
import { replaceTexts } from '../../../json/replace-texts.ts';
import type { MemoryFact, MemoryManagerOptions } from '../../types.ts';
import { withinTime } from '../../../store/parts/within-time.ts';

/** A placeholder of `genkitx-agents/privacy`. */
const NUMBERED = /\[([A-Z]{1,30}(?:_[A-Z]{1,30}){0,7})_\d{1,5}\]/g;

/** The levels of a message's part whose member names come from Genkit (`toolResponse`, `output`), so they are not redacted. */
const GENKIT_LEVELS = 2;

/** Replaces personal values in a text. */
export type Redact = (text: string, options?: { label?: string }) => Promise<string>;

/**
 * Wraps the application's `redact` with a time limit. Also removes the numbers of placeholders, because in another session or text the same
 * number means another value.
 *
 * @param redact `undefined`: only removes the numbers.
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
  const redacted = content.map(async (part) => (part.media ? part : redactJson(part, redact, GENKIT_LEVELS)));
  return { role, content: await Promise.all(redacted) };
}

/** Redacts the text, the data and the key of a fact. Keeps the names of its members, because a schema may require them. */
export async function redactFact<F extends MemoryFact>(fact: F, redact: Redact): Promise<F> {
  const { text, data, key } = fact;
  const given = { text, ...(data !== undefined && { data }), ...(key !== undefined && { key }) };
  return { ...fact, ...(await redactJson(given, redact)) };
}

/**
 * Redacts the texts and numbers of a value.
 *
 * @param keptLevels The levels in which the names of members are kept. Default: all.
 */
export function redactJson<T>(value: T, redact: Redact, keptLevels = Infinity): Promise<T> {
  return replaceTexts(value, async (text, { kind, path, label }) =>
    kind === 'name' && path.length < keptLevels ? text : redact(text, label === undefined ? {} : { label }),
  );
}
