import type { MessageData, Part } from 'genkit';
import { cutByBytes, jsonBytes } from '../../../json/size.ts';
import { MessageLog } from '../../../session/log/message-log.ts';
import { beginning } from '../../../session/log/transcript.ts';
import type { MemoryFact } from '../../types.ts';
import { sha256Of, type FactsInput, type JobSource, type LearnInput } from '../records/job-input.ts';
import { procedureMark, shortHash, unreadRanges, type Range, type SourceNote } from '../records/ranges.ts';

/** The most bytes of a job's messages or facts: the whole job then stays within the limits of a store. */
const MAX_BYTES = 384 * 1024;
/** The most messages of a job: few enough for a model to read well. */
const MAX_MESSAGES = 80;
/** The same if each becomes a memory: few enough for one commit. */
const MAX_VERBATIM_MESSAGES = 30;
const MAX_FACTS = 30;
/** The most characters of a text in a job. */
const MAX_TEXT = 40_000;

/**
 * The jobs for the unread messages of a source.
 *
 * @param end The end of the messages to read. Default: the end of the last turn that has ended.
 */
export function learnInputs(
  task: LearnInput['task'],
  source: JobSource,
  messages: readonly MessageData[],
  note: SourceNote,
  end?: number,
): LearnInput[] {
  const log = MessageLog.of(messages);
  const hashAt = (position: number) => shortHash(log.prefixHash(position));
  const whole = { from: 0, to: end ?? log.completeTo };
  // A procedure needs all messages, also those that were read already.
  const ranges = task === 'procedure' ? [whole] : unreadRanges(whole, hashAt, note.ranges);
  const inputs = ranges.flatMap((range) => {
    const small = messages.slice(range.from, range.to).map(smallMessage);
    return portions(range, small, log, task).map(({ from, to }): LearnInput => {
      const sha256s = Array.from({ length: to - from }, (_, i) => log.prefixHash(from + i + 1));
      const read = { from, to, base: hashAt(from), hashes: sha256s.map(shortHash).join('') };
      const part = small.slice(from - range.from, to - range.from);
      // A procedure may have thousands of messages, and is never divided.
      const kept = task === 'procedure' ? sha256s.slice(-1) : sha256s;
      return { version: 1, task, source, range: read, messages: part, sha256s: kept };
    });
  });
  return task === 'procedure' ? inputs.filter((input) => !note.seen.includes(procedureMark(input.range))) : inputs;
}

/** Cuts the range into one portion a job, between turns where possible. A procedure gets the last portion only. */
function portions(range: Range, small: readonly MessageData[], log: MessageLog, task: LearnInput['task']): Range[] {
  const most = task === 'verbatim' ? MAX_VERBATIM_MESSAGES : task === 'procedure' ? Infinity : MAX_MESSAGES;
  const sizes = small.map((message) => jsonBytes(message));
  const done: Range[] = [];
  for (let from = range.from; from < range.to;) {
    let to = from;
    for (let bytes = 0; to < range.to && to - from < most; to++) {
      bytes += sizes[to - range.from]!;
      if (to > from && bytes > MAX_BYTES) break;
    }
    const turn = log.turnStarts.findLast((start) => start > from && start <= to);
    if (turn !== undefined && to < range.to) to = turn;
    done.push({ from, to });
    from = to;
  }
  return task === 'procedure' ? done.slice(-1) : done;
}

/** The message as a job keeps it: long texts are cut, large media are replaced by their type, and what is too much in all is left out. */
function smallMessage({ role, content }: MessageData): MessageData {
  const [kept = [], ...rest] = cutByBytes(content.map(smallPart), MAX_BYTES);
  return {
    role,
    content: rest.length > 0 ? [...kept, { text: '[the rest of the message: too large to be read]' }] : kept,
  };
}

function smallPart(part: Part): Part {
  if (part.text !== undefined) return { text: beginning(part.text, MAX_TEXT) };
  const { metadata: _, ...kept } = part;
  if (jsonBytes(kept, MAX_TEXT * 4) <= MAX_TEXT * 4) return kept;
  if (part.media) return { text: `[media: ${part.media.contentType ?? 'unknown type'}, too large to be read]` };
  const text = part.toolResponse
    ? `[${part.toolResponse.name} answers: ${beginning(JSON.stringify(part.toolResponse.output) ?? '', MAX_TEXT)}]`
    : `[${beginning(JSON.stringify(kept), MAX_TEXT)}]`;
  return { text };
}

/**
 * The jobs for facts that are given in place of messages, from the first one on that is not known: a later one may say otherwise. The hash of
 * each contains those before it, so if the last one is known, all are.
 */
export function factsInputs(source: JobSource, facts: readonly MemoryFact[], note: SourceNote): FactsInput[] {
  const inputs: FactsInput[] = [];
  for (const part of cutByBytes(facts, MAX_BYTES, MAX_FACTS)) {
    // With the type and the trust, so that an explicit statement of an implicit fact is new.
    const sha256 = sha256Of([source.type, source.trust, part, inputs.at(-1)?.sha256]);
    inputs.push({ version: 1, task: 'facts', source, facts: part, sha256 });
  }
  const isKnown = ({ sha256 }: FactsInput) => note.seen.includes(sha256);
  const last = inputs.at(-1);
  return !last || isKnown(last) ? [] : inputs.slice(inputs.findIndex((input) => !isKnown(input)));
}
