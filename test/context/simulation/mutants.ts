/** A fault planted into the window: the text `find` in the file is replaced. */
export interface Mutant {
  readonly what: string;
  /** Below `src/context`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** Faults of the kinds that compactors are known for. Each must be found by the checker. */
export const MUTANTS: readonly Mutant[] = [
  {
    what: 'a summary counts for any branch',
    file: 'compaction/session-compactions.ts',
    find: 'log.prefixHash(to) === sha256',
    replace: 'sha256.length > 0',
  },
  {
    what: 'a summary is cut in the middle',
    file: 'compaction/session-compactions.ts',
    find: 'cutToTokens(asked.text, plan.maxTokens, countText)',
    replace: 'asked.text.slice(0, asked.text.length / 2)',
  },
  {
    what: 'what another process summarized is never read',
    file: 'compaction/session-compactions.ts',
    find: 'if (this.#revision !== before) return;',
    replace: 'if (before !== undefined) return;',
  },
  {
    what: 'the summarizer does not see the summary before',
    file: 'compaction/session-compactions.ts',
    find: 'transcript(previous, messages)',
    replace: 'transcript(undefined, messages)',
  },
  {
    what: 'a record says that it ends a turn later',
    file: 'compaction/session-compactions.ts',
    find: 'to: range.to,\n',
    replace: 'to: Math.min(log.length, range.to + 2),\n',
  },
  {
    what: 'a record has the hash of another place',
    file: 'compaction/session-compactions.ts',
    find: 'sha256: log.prefixHash(range.to),',
    replace: 'sha256: log.prefixHash(range.from),',
  },
  {
    what: 'the summarizer reads one message too few',
    file: 'compaction/session-compactions.ts',
    find: 'log.messages.slice(previous ? readFrom : 0, range.to)',
    replace: 'log.messages.slice(previous ? readFrom : 0, range.to - 1)',
  },
  {
    what: 'the summarizer begins one message too late',
    file: 'compaction/session-compactions.ts',
    find: 'log.messages.slice(previous ? readFrom : 0, range.to)',
    replace: 'log.messages.slice(previous ? range.from + 1 : 0, range.to)',
  },
  {
    what: 'a failed summary is taken for an empty one',
    file: 'compaction/session-compactions.ts',
    find: "throw new Error('The summarizer returned no text.')",
    replace: "return { text: ' ' }",
  },
  {
    what: 'the log is taken for the same when only its length grew',
    file: '../session/log/message-log.ts',
    find: 'isSame(messages[same]!, before.messages[same]!)',
    replace: 'messages[same] !== undefined',
  },
  {
    what: 'a tool request is torn from its response',
    file: 'prepare/choose-history.ts',
    find: ': completed(history.items, log, this.summary?.to)',
    replace: ": history.items.filter(({ message }) => message.role !== 'tool')",
  },
  {
    what: 'one of two messages that are joined is lost',
    file: 'prepare/repair.ts',
    find: '[...last.content, ...message.content]',
    replace: 'message.content',
  },
  {
    what: 'the part of a backlog that one call may not read is forgotten',
    file: 'compaction/session-compactions.ts',
    find: 'hasMade = true;',
    replace: 'return true;',
  },
  {
    what: 'lastTurns keeps the oldest turns',
    file: 'history/last-turns.ts',
    find: 'turns.slice(Math.ceil(excess / step) * step)',
    replace: 'turns.slice(0, count).slice(1)',
  },
  {
    what: 'what a strategy left out is not reported',
    file: 'prepare/choose-history.ts',
    find: 'if (from > next) dropped.push([next, from]);',
    replace: '',
  },
  {
    what: 'dropped messages are reported one off',
    file: 'prepare/choose-history.ts',
    find: 'dropped.push([next, from])',
    replace: 'dropped.push([next + 1, from + 1])',
  },
  {
    what: 'covered messages are sent as well',
    file: 'prepare/choose-history.ts',
    find: 'all && !this.summary ? all : completed(history.items, log, this.summary?.to)',
    replace: 'all ? all : completed(all, log)',
  },
  {
    what: 'the summary is reported and not sent',
    file: 'prepare/assemble.ts',
    find: '...(summaryInUse ? [dataText(',
    replace: '...(summaryInUse && !log ? [dataText(',
  },
  {
    what: 'the newest summary is not used when an older one fits too',
    file: 'compaction/session-compactions.ts',
    find: 'toSorted((a, b) => b.to - a.to)',
    replace: 'toSorted((a, b) => a.to - b.to)',
  },
  {
    what: 'parallel tool calls lose all responses but the first',
    file: 'prepare/repair.ts',
    find: 'return response ?? missingResponse',
    replace: 'return (response === responses[0] ? response : undefined) ?? missingResponse',
  },
];
