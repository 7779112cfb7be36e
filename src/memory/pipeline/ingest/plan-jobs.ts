import type { MessageData, Part } from 'genkit';
import { cutByBytes, jsonBytes } from '../../../json/size.ts';
import { MessageLog } from '../../../session/log/message-log.ts';
import { beginning } from '../../../session/log/transcript.ts';
import type { MemoryFact } from '../../types.ts';
import type { JobSource } from '../records/candidate.ts';
import { sha256Of, type FactsInput, type LearnInput } from '../records/job-input.ts';
import { procedureMark, shortHash, unreadRanges, type Range, type SourceNote } from '../records/ranges.ts';

/** The most bytes of a job's messages or facts. With them the whole job stays within the limits of a store. */
const MAX_BYTES = 384 * 1024;
/** The most messages of a job. A model reads 80 carefully, and 30 memories fit into one commit. */
const MAX_MESSAGES: Readonly<Record<LearnInput['task'], number>> = { learn: 80, verbatim: 30, procedure: Infinity };
const MAX_FACTS = 30;
/** The most characters of a text in a job. */
const MAX_TEXT = 40_000;

/**
 * Returns the inputs of jobs for the unread messages of a source.
 *
 * @param end The end of the messages to read. Default: the end of the last turn that has ended.
 */
export function learnInputs(
  task: 'learn' | 'verbatim',
  source: JobSource,
  messages: readonly MessageData[],
  note: SourceNote,
  end?: number,
): LearnInput[] {
  const log = MessageLog.of(messages);
  const whole = { from: 0, to: end ?? log.completeTo };
  const unread = unreadRanges(whole, (position) => shortHash(log.prefixHash(position)), note.ranges);
  return unread.flatMap((range) => inputsOf(task, source, log, range));
}

/** Returns the input for a procedure, if it is new: the last messages that fit into a job, also those that were read before. */
export function procedureInputs(source: JobSource, messages: readonly MessageData[], note: SourceNote): LearnInput[] {
  const log = MessageLog.of(messages);
  const input = inputsOf('procedure', source, log, { from: 0, to: log.completeTo }).at(-1);
  if (!input || note.seen.includes(procedureMark(input.range))) return [];
  // There may be thousands of messages, and the job is never divided.
  return [{ ...input, sha256s: input.sha256s.slice(-1) }];
}

/** Returns an input for each portion of a range. */
function inputsOf(task: LearnInput['task'], source: JobSource, log: MessageLog, range: Range): LearnInput[] {
  const small = log.messages.slice(range.from, range.to).map(smallMessage);
  return portions(range, small, log.turnStarts, MAX_MESSAGES[task]).map(({ from, to }) => {
    const sha256s = Array.from({ length: to - from }, (_, i) => log.prefixHash(from + i + 1));
    const base = shortHash(log.prefixHash(from));
    const read = { from, to, base, hashes: sha256s.map(shortHash).join('') };
    const part = small.slice(from - range.from, to - range.from);
    return { version: 1, task, source, range: read, messages: part, sha256s };
  });
}

/** Cuts a range into portions of one job each, between turns where possible. `small` are its messages. */
function portions(range: Range, small: readonly MessageData[], turnStarts: readonly number[], most: number): Range[] {
  const sizes = small.map((message) => jsonBytes(message));
  const done: Range[] = [];
  for (let from = range.from; from < range.to;) {
    let to = from;
    for (let bytes = 0; to < range.to && to - from < most; to++) {
      bytes += sizes[to - range.from]!;
      if (to > from && bytes > MAX_BYTES) break;
    }
    const turn = turnStarts.findLast((start) => start > from && start <= to);
    if (turn !== undefined && to < range.to) to = turn;
    done.push({ from, to });
    from = to;
  }
  return done;
}

/** Reduces a message for a job: cuts long texts, replaces large media by their type, and omits parts beyond the limit. */
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
  if (!part.toolResponse) return { text: `[${beginning(JSON.stringify(kept), MAX_TEXT)}]` };
  const { name, ref, output } = part.toolResponse;
  const text = typeof output === 'string' ? output : (JSON.stringify(output) ?? '');
  return { toolResponse: { name, ref, output: beginning(text, MAX_TEXT) } };
}

/**
 * Returns the inputs of jobs for facts that are given instead of messages, starting with the first unknown fact, because a later fact may
 * contradict it. The hash of each job contains the hashes of the earlier jobs, so if the last one is known, all are known.
 */
export function factsInputs(source: JobSource, facts: readonly MemoryFact[], note: SourceNote): FactsInput[] {
  const inputs: FactsInput[] = [];
  for (const part of cutByBytes(facts, MAX_BYTES, MAX_FACTS)) {
    // The hash contains the type and the trust, so that an explicit statement of an implicit fact is new.
    const sha256 = sha256Of([source.type, source.trust, part, inputs.at(-1)?.sha256]);
    inputs.push({ version: 1, task: 'facts', source, facts: part, sha256 });
  }
  const isKnown = ({ sha256 }: FactsInput) => note.seen.includes(sha256);
  const last = inputs.at(-1);
  return !last || isKnown(last) ? [] : inputs.slice(inputs.findIndex((input) => !isKnown(input)));
}
