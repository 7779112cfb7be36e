import type { SnapshotMetadata } from 'genkitx-agents';

const SYMBOLS: Readonly<Record<string, string>> = {
  completed: '●',
  pending: '○',
  expired: '◌',
  failed: '✗',
  aborted: '■',
};

/**
 * A session drawn as a tree, with a line for each snapshot: successive turns go straight down, branches go to the right.
 *
 * @param snapshots In the order of their first saves. A snapshot whose parent is missing begins another tree.
 * @param describe Returns the text after a snapshot's symbol.
 */
export function* treeLines(
  snapshots: readonly SnapshotMetadata[],
  describe: (snapshot: SnapshotMetadata) => string,
): Generator<string> {
  const ids = new Set(snapshots.map(({ snapshotId }) => snapshotId));
  const children = new Map<string | undefined, SnapshotMetadata[]>();
  for (const snapshot of snapshots) {
    const { parentId } = snapshot;
    const parent = parentId !== undefined && ids.has(parentId) ? parentId : undefined;
    const siblings = children.get(parent);
    if (siblings) siblings.push(snapshot);
    else children.set(parent, [snapshot]);
  }
  // A stack, because a session may branch ten thousand times.
  const stack = (children.get(undefined) ?? []).toReversed().map((snapshot) => ({ snapshot, lead: '', indent: '' }));
  while (stack.length > 0) {
    const { snapshot, lead, indent } = stack.pop()!;
    yield `${lead}${SYMBOLS[snapshot.status ?? ''] ?? '?'} ${describe(snapshot)}`;
    const below = children.get(snapshot.snapshotId) ?? [];
    const isBranching = below.length > 1;
    for (const [i, child] of [...below.entries()].toReversed()) {
      const isLast = i === below.length - 1;
      stack.push(
        isBranching
          ? { snapshot: child, lead: `${indent}${isLast ? '└─' : '├─'}`, indent: `${indent}${isLast ? '  ' : '│ '}` }
          : { snapshot: child, lead: indent, indent },
      );
    }
  }
}
