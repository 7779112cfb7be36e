import type { TreeNode, TreePage } from '../api.ts';
import type { Params } from '../http/params.ts';
import type { Source } from '../source.ts';
import { nodeOf } from './node.ts';

/** Maximum number of nodes from one request of the store. */
const LIMIT = 1000;

/** A session's snapshots without their states; each 1,000 take one request. */
export async function readTree(source: Source, params: Params): Promise<TreePage> {
  const store = source.having('list');
  const sessionId = params.mustText('sessionId');
  const most = params.whole('limit', 1, 10_000) ?? 10_000;
  const nodes: TreeNode[] = [];
  let cursor = params.text('cursor');
  do {
    const page = await store.listSnapshots({
      ...source.caller,
      sessionId,
      limit: Math.min(LIMIT, most - nodes.length),
      cursor,
    });
    nodes.push(...page.items.map(nodeOf));
    cursor = page.nextCursor;
  } while (cursor !== undefined && nodes.length < most);
  return { nodes, nextCursor: cursor };
}
