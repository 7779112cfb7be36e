import type { SnapshotDiff, ValueChange } from '../../../../src/inspector/api.ts';
import { useRead } from '../api/use-read.ts';
import { Failure } from '../components/failure.tsx';
import { markOf } from '../logic/status.ts';
import type { PlacedNode, TreeLayout } from '../logic/tree-layout.ts';
import { count, counted } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { branchTurnName } from '../tree/turn-box.tsx';
import { Messages } from './conversation.tsx';
import { Change } from './value-history.tsx';

/** The changes since the parent, or between any two snapshots: for branches, side by side. */
export function Changes({ placed, layout }: { placed: PlacedNode; layout: TreeLayout }) {
  const { place, tenant, set } = usePage();
  const { from } = place.query;
  const own = placed.node.snapshotId;
  const base = from && from !== own ? from : placed.node.parentId;
  const { data, error, isLoading, again } = useRead('diff', base ? { from: base, to: own, tenant } : undefined);
  const fixed = from ? layout.byId.get(from) : undefined;
  return (
    <>
      <p className="comparing">
        <span>
          {!base && 'There is no turn before this one.'}
          {base &&
            `Compared with ${fixed && fixed !== placed ? nameOf(fixed) : from && from !== own ? from : 'the turn before'}.`}
        </span>
        {from !== own && (
          <button type="button" onClick={() => set({ from: own })}>
            Compare other turns with this one
          </button>
        )}
        {from && (
          <button type="button" onClick={() => set({ from: '' })}>
            Compare with the turn before
          </button>
        )}
      </p>
      {from === own && <p className="hint">Now select another snapshot in the tree.</p>}
      {error && <Failure facts={error} onRetry={again} />}
      {base && !data && !error && <p className="loading">Loading…</p>}
      {base && data && <Diff diff={data} isStale={isLoading} names={[nameOf(layout.byId.get(base)), nameOf(placed)]} />}
    </>
  );
}

function nameOf(placed: PlacedNode | undefined): string {
  const waits = placed && markOf(placed.node) === 'waiting' ? ', which waits for an answer' : '';
  return `${branchTurnName(placed)}${waits}`;
}

interface DiffProps {
  diff: SnapshotDiff;
  isStale: boolean;
  names: readonly [from: string, to: string];
}

function Diff({ diff: { messages, custom, artifacts }, isStale, names }: DiffProps) {
  const { same, removed, added } = messages;
  const isBoth = removed.length > 0 && added.length > 0;
  return (
    <div className="diff" aria-busy={isStale} data-stale={isStale}>
      <Values title="State" changes={custom} none="The state is the same." />
      <h3>Messages</h3>
      {same > 0 && (
        <p className="empty">The first {same === 1 ? 'message is' : `${count(same)} messages are`} the same.</p>
      )}
      <div className={isBoth ? 'sides both' : 'sides'}>
        {removed.length > 0 && (
          <section className="side removed" aria-label={`Only in ${names[0]}`}>
            <h4>Only in {names[0]}</h4>
            <Messages messages={removed} offset={same} />
          </section>
        )}
        {added.length > 0 && (
          <section className="side added" aria-label={`Only in ${names[1]}`}>
            <h4>{isBoth ? `Only in ${names[1]}` : 'Added'}</h4>
            <Messages messages={added} offset={same} />
          </section>
        )}
      </div>
      {removed.length + added.length === 0 && <p className="empty">No message was added or removed.</p>}
      {artifacts.length > 0 && <Values title="Artifacts" changes={artifacts} none="" />}
    </div>
  );
}

const MOST_CHANGES = 30;

function Values({ title, changes, none }: { title: string; changes: readonly ValueChange[]; none: string }) {
  return (
    <>
      <h3>{title}</h3>
      {changes.length === 0 && <p className="empty">{none}</p>}
      <ul className="values">
        {changes.slice(0, MOST_CHANGES).map(({ path, before, after }) => (
          <li key={path}>
            <code>{path || 'the whole value'}</code>
            <Change before={before} after={after} />
          </li>
        ))}
      </ul>
      {changes.length > MOST_CHANGES && (
        <p className="empty">And {counted(changes.length - MOST_CHANGES, 'more value')}.</p>
      )}
    </>
  );
}
