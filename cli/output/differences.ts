import type { MessageData } from 'genkitx-agents';
import type { SnapshotChanges, ValueChange } from 'genkitx-agents/inspector';
import { messageLines } from './conversation.ts';
import { brief, oneLine } from './text.ts';

/** The differences as lines for people. */
export function* differenceLines({ messages, custom, artifacts }: SnapshotChanges): Generator<string> {
  const { same, removed, added } = messages;
  yield `messages: ${same} the same, ${removed.length} removed, ${added.length} added`;
  yield* signed('-', removed);
  yield* signed('+', added);
  for (const [title, changes] of Object.entries({ state: custom, artifacts })) {
    if (changes.length > 0) yield* ['', title];
    for (const change of changes) yield `  ${oneLine(change.path || 'all of it')}: ${describe(change)}`;
  }
}

function* signed(sign: string, messages: readonly MessageData[]): Generator<string> {
  for (const message of messages) {
    for (const line of messageLines(message, { isFull: false })) yield `${sign} ${line}`;
  }
}

function describe({ before, after }: ValueChange): string {
  const next = after === undefined ? 'removed' : brief(after);
  return before === undefined ? next : `${brief(before)} → ${next}`;
}
