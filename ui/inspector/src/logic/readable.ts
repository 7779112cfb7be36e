/** A conversation for people: turns, and the parts that a chat would not show. Pure. */
import type { MessageData } from '../../../../src/inspector/api.ts';
import { turnsOf, type Step } from '../../../logic/turns.ts';

type Part = MessageData['content'][number];

export interface ReadableTurn {
  /** Position of its first message. */
  from: number;
  /** Position after its last one. */
  to: number;
  /** 1 for the first message of a user; 0 for messages before it. */
  number: number;
  asked: string;
  steps: readonly Step[];
  /** Parts that are neither text nor tools, and messages of the system. */
  others: readonly { name: string; part: Part }[];
}

/** @param offset Position of the first message. */
export function readableTurns(messages: readonly MessageData[], offset = 0): ReadableTurn[] {
  const starts = messages.flatMap(({ role }, position) => (role === 'user' || position === 0 ? [position] : []));
  let number = 0;
  return starts.map((start, index) => {
    const end = starts[index + 1] ?? messages.length;
    const slice = messages.slice(start, end);
    const isAsked = slice[0]?.role === 'user';
    // Messages before the user's first message are shown as an answer to an empty one.
    const [turn] = turnsOf(
      isAsked ? slice : [{ role: 'user', content: [] }, ...slice.filter(({ role }) => role !== 'system')],
    );
    if (isAsked) number++;
    return {
      from: offset + start,
      to: offset + end,
      number: isAsked ? number : 0,
      asked: turn?.asked ?? '',
      steps: turn?.steps ?? [],
      others: slice.flatMap(({ role, content }) =>
        content.flatMap((part) => {
          const name = role === 'system' ? 'instructions' : nameOf(part);
          return name === undefined ? [] : [{ name, part }];
        }),
      ),
    };
  });
}

function nameOf({ text, toolRequest, toolResponse, ...rest }: Part): string | undefined {
  if (text !== undefined || toolRequest || toolResponse) return undefined;
  return Object.keys(rest).find((key) => key !== 'metadata') ?? 'part';
}
