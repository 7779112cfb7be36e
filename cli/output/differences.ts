import { isDeepStrictEqual } from 'node:util';
import type { MessageData, SessionSnapshot } from 'genkitx-agents';
import { messageLines } from './conversation.ts';
import { brief, oneLine } from './text.ts';

/** A changed value. `before` or `after` is missing if there was no value. */
export interface Change {
  /** A JSON Pointer. */
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** The differences between two snapshots. */
export interface Differences {
  readonly messages: {
    /** How many messages are the same, from the first on. */
    readonly kept: number;
    readonly removed: readonly MessageData[];
    readonly added: readonly MessageData[];
  };
  /** Changes of the custom state. */
  readonly state: readonly Change[];
  /** Changes of the artifacts, by their names. */
  readonly artifacts: readonly Change[];
  /** Changes of the other members: status, times, usage. */
  readonly snapshot: readonly Change[];
}

export function differencesOf(a: SessionSnapshot, b: SessionSnapshot): Differences {
  const [before, after] = [a.state?.messages ?? [], b.state?.messages ?? []];
  let kept = 0;
  while (kept < before.length && kept < after.length && isDeepStrictEqual(before[kept], after[kept])) kept++;
  const { state: _a, ...metaA } = a;
  const { state: _b, ...metaB } = b;
  return {
    messages: { kept, removed: before.slice(kept), added: after.slice(kept) },
    state: [...changesOf(a.state?.custom ?? {}, b.state?.custom ?? {})],
    artifacts: [...changesOf(artifactsOf(a), artifactsOf(b))],
    snapshot: [...changesOf(metaA, metaB)],
  };
}

function artifactsOf({ state }: SessionSnapshot): Record<string, unknown> {
  return Object.fromEntries((state?.artifacts ?? []).map((artifact, i) => [artifact.name ?? String(i), artifact]));
}

/** The innermost values that differ: objects are compared by key, lists by index. */
function* changesOf(before: unknown, after: unknown, path = ''): Generator<Change> {
  if (isDeepStrictEqual(before, after)) return;
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) {
    yield { path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) };
    return;
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const valueIn = (value: Record<string, unknown>): unknown => (Object.hasOwn(value, key) ? value[key] : undefined);
    yield* changesOf(valueIn(before), valueIn(after), `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  }
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The differences as lines for people. */
export function* differenceLines({ messages, ...others }: Differences): Generator<string> {
  const { kept, removed, added } = messages;
  yield `messages: ${kept} the same, ${removed.length} removed, ${added.length} added`;
  yield* signed('-', removed);
  yield* signed('+', added);
  for (const [title, changes] of Object.entries(others)) {
    if (changes.length > 0) yield* ['', title];
    for (const change of changes) yield `  ${oneLine(change.path)}: ${describe(change)}`;
  }
}

function* signed(sign: string, messages: readonly MessageData[]): Generator<string> {
  for (const message of messages) {
    for (const line of messageLines(message, { isFull: false })) yield `${sign} ${line}`;
  }
}

function describe({ before, after }: Change): string {
  const next = after === undefined ? 'removed' : brief(after);
  return before === undefined ? next : `${brief(before)} → ${next}`;
}
