import type { ReactNode } from 'react';
import type { SnapshotView } from '../../../../src/inspector/api.ts';
import { write } from '../api/requests.ts';
import { Confirmed } from '../components/confirm.tsx';
import { Failure } from '../components/failure.tsx';
import { Guard } from '../components/guard.tsx';
import { JsonTree } from '../components/json-tree.tsx';
import { StatusMark } from '../components/status-mark.tsx';
import { TabList } from '../components/tab-list.tsx';
import { markOf } from '../logic/status.ts';
import type { PlacedNode, TreeLayout } from '../logic/tree-layout.ts';
import { bytes, count, time } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { turnName } from '../tree/turn-box.tsx';
import { Artifacts } from './artifacts.tsx';
import { Changes } from './changes.tsx';
import { Conversation } from './conversation.tsx';
import { Facts } from './facts.tsx';
import { Fork } from './fork.tsx';
import { Seen } from './seen.tsx';
import { ValueHistory } from './value-history.tsx';

interface Props {
  placed: PlacedNode;
  layout: TreeLayout;
  view: SnapshotView;
  /** Whether the view is still that of the previous selection. */
  isStale: boolean;
}

const TABS = ['conversation', 'state', 'artifacts', 'seen', 'changes', 'fork', 'facts'] as const;
type Tab = (typeof TABS)[number];

/** The data of a snapshot in tabs. */
export function SnapshotPane({ placed, layout, view, isStale }: Props) {
  const { info, place, tenant, set } = usePage();
  const { node } = placed;
  const canFork = info.agents.length > 0 && !info.readOnly;
  const mark = markOf(node);
  const names: Record<Tab, string | false> = {
    conversation: 'Conversation',
    state: 'State',
    artifacts: `Artifacts${view.artifacts.length > 0 ? ` ${view.artifacts.length}` : ''}`,
    seen: 'What the model saw',
    changes: 'Changes',
    fork: canFork && 'Try again',
    facts: 'Facts',
  };
  const tabs = TABS.filter((tab) => names[tab]);
  const tab = tabs.find((name) => name === place.query['tab']) ?? 'conversation';
  const abort = async () => {
    await write('abort', { tenant, snapshotId: node.snapshotId });
  };
  const parts: Record<Tab, () => ReactNode> = {
    conversation: () => <Conversation view={view} added={node.messages?.added} />,
    state: () => <State view={view} placed={placed} layout={layout} />,
    artifacts: () => <Artifacts artifacts={view.artifacts} />,
    seen: () => <Seen view={view} />,
    changes: () => <Changes placed={placed} layout={layout} />,
    fork: () => <Fork placed={placed} view={view} />,
    facts: () => <Facts view={view} placed={placed} />,
  };
  return (
    <>
      <header className="snapshot-head">
        <h2>{turnName(placed)}</h2>
        <StatusMark mark={mark} isNamed />
        <span className="facts">
          <time dateTime={node.updatedAt ?? node.createdAt}>{time(node.updatedAt ?? node.createdAt)}</time>
          {node.model && ` · ${node.model}`}
          {node.tokens !== undefined && ` · ${count(node.tokens)} tokens`}
        </span>
        {(mark === 'pending' || mark === 'expired') && !info.readOnly && (
          <Confirmed action="Abort" onYes={abort}>
            <p>The turn stops. Its result until now is kept if the agent is configured so.</p>
          </Confirmed>
        )}
      </header>
      {view.error && !isStale && <Failure facts={view.error} title="This turn failed." />}
      <TabList
        tabs={tabs.map((name) => [name, names[name] as string])}
        current={tab}
        onChoose={(name) => set({ tab: name })}
      />
      <div className="tab-panel" role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`} data-stale={isStale}>
        <Guard of={`${view.node.snapshotId} ${tab}`}>{parts[tab]()}</Guard>
      </div>
    </>
  );
}

/** The custom state as a tree. Choosing a value shows the turns that changed it. */
function State({ view, placed, layout }: Omit<Props, 'isStale'>) {
  const { place, set } = usePage();
  const { value: path } = place.query;
  if (view.custom === undefined) return <p className="empty">The session has no custom state.</p>;
  return (
    <>
      {path !== undefined && (
        <ValueHistory key={path} path={path} snapshotId={placed.node.snapshotId} layout={layout} />
      )}
      <JsonTree
        value={view.custom}
        onChoose={(chosen) => set({ value: chosen === path ? '' : chosen })}
        chosen={path}
      />
      <p className="empty">
        {bytes(view.stateBytes)} with messages and artifacts. Choose a value to see which turns changed it.
      </p>
    </>
  );
}
