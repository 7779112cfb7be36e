import { countEqual } from '../../json/count-same.ts';
import { isMembers } from '../../json/fault.ts';
import { applyShared } from '../../json/patch/apply-checked.ts';
import { diff } from '../../json/patch/diff.ts';
import { formatPointer, parsePointer } from '../../json/pointer.ts';
import { getMember, jsonEqual } from '../../json/value.ts';
import { invalidArgument } from '../../errors.ts';
import type { SessionSnapshot } from '../../snapshot/snapshot.ts';
import type { ChangesPage, SnapshotChanges, SnapshotDiff, ValueChange } from '../api.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';
import { nodeOf } from './node.ts';

/** The differences between two snapshots. Two requests. */
export async function readDiff(source: Source, params: Params): Promise<SnapshotDiff> {
  const [from, to] = await Promise.all([
    source.mustRead({ snapshotId: params.mustText('from') }),
    source.mustRead({ snapshotId: params.mustText('to') }),
  ]);
  return { from: nodeOf(from), to: nodeOf(to), ...snapshotChanges(from, to) };
}

/** The messages, values of the custom state and artifacts that differ between two snapshots of any sessions. */
export function snapshotChanges(from: SessionSnapshot, to: SessionSnapshot): SnapshotChanges {
  const [before, after] = [from.state?.messages ?? [], to.state?.messages ?? []];
  const same = countEqual(before, after);
  return {
    messages: { same, removed: before.slice(same), added: after.slice(same) },
    custom: valueChanges(from.state?.custom, to.state?.custom),
    artifacts: valueChanges(artifactsByName(from), artifactsByName(to)),
  };
}

/** The turns of a branch that changed a value, the last one first. One request for each snapshot. */
export async function readChanges(source: Source, params: Params): Promise<ChangesPage> {
  const path = readPointer(params.mustText('path'));
  const limit = params.whole('limit', 1, 500) ?? 100;
  const items: ChangesPage['items'] = [];
  let snapshot = await source.mustRead({ snapshotId: params.mustText('snapshotId') });
  for (let read = 1; ; read++) {
    const { parentId } = snapshot;
    if (parentId !== undefined && read >= limit) return { items, nextSnapshotId: snapshot.snapshotId };
    const parent = parentId === undefined ? undefined : await source.read({ snapshotId: parentId });
    const change = changeOf(valueAt(parent?.state?.custom, path), valueAt(snapshot.state?.custom, path));
    if (change) items.push({ path: formatPointer(path), ...change, node: nodeOf(snapshot) });
    if (!parent) return { items };
    snapshot = parent;
  }
}

/**
 * The changed values by path. For objects these are the changes of their members; for lists the operations of a patch, with positions at
 * the time of each operation.
 */
function valueChanges(from: unknown, to: unknown, path: readonly string[] = []): ValueChange[] {
  if (isMembers(from) && isMembers(to)) {
    const names = new Set([...Object.keys(from), ...Object.keys(to)]);
    return [...names].flatMap((name) => valueChanges(getMember(from, name), getMember(to, name), [...path, name]));
  }
  if (Array.isArray(from) && Array.isArray(to)) return listChanges(from, to, formatPointer(path));
  const change = changeOf(from, to);
  return change ? [{ path: formatPointer(path), ...change }] : [];
}

function listChanges(from: readonly unknown[], to: readonly unknown[], at: string): ValueChange[] {
  let current: unknown = from;
  return diff(from, to).map((operation) => {
    const { op, path, value } = operation;
    const before = op === 'add' ? undefined : valueAt(current, parsePointer(path));
    current = applyShared(current, [operation]);
    return { path: `${at}${path}`, before, after: value };
  });
}

function artifactsByName({ state }: SessionSnapshot): object {
  return Object.fromEntries(
    (state?.artifacts ?? []).map((artifact, i) => [artifact.name ?? `artifact ${i + 1}`, artifact]),
  );
}

function changeOf(before: unknown, after: unknown): Pick<ValueChange, 'before' | 'after'> | undefined {
  return jsonEqual(before, after) ? undefined : { before, after };
}

function valueAt(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const token of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = getMember(value, token);
  }
  return value;
}

function readPointer(path: string): string[] {
  try {
    return parsePointer(path);
  } catch (error) {
    throw invalidArgument(`path: ${(error as Error).message}.`);
  }
}
