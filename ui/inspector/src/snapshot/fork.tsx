import { useState, type FormEvent } from 'react';
import type { InspectorError, SnapshotView } from '../../../../src/inspector/api.ts';
import { factsOf, write } from '../api/requests.ts';
import { Failure } from '../components/failure.tsx';
import { markOf } from '../logic/status.ts';
import type { PlacedNode, TreeLayout } from '../logic/tree-layout.ts';
import { usePage } from '../page.ts';
import { turnName } from '../tree/turn-box.tsx';

interface Props {
  placed: PlacedNode;
  layout: TreeLayout;
  view: SnapshotView;
}

/** `instead` of the turn or `after` it, or by an answer to the tools that wait at its end. */
type Way = 'instead' | 'after' | 'approve' | 'deny';

/** Continues from the snapshot, or says something else in its turn: a branch, shown beside this one. */
export function Fork({ placed, layout, view }: Props) {
  const { info, tenant, set } = usePage();
  const [agent, setAgent] = useState(info.agents[0]!);
  const [chosen, choose] = useState<Way>();
  const [text, setText] = useState('');
  const [model, setModel] = useState('');
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<InspectorError>();
  // For a moment the view is still that of the snapshot before.
  const waiting = markOf(placed.node) === 'waiting' && waitingIn(view);
  const ways: [way: Way, words: string][] = [];
  if (placed.parent) ways.push(['instead', `In place of ${turnName(placed)}`]);
  ways.push(['after', `After ${turnName(placed)}`]);
  if (waiting) ways.push(['approve', `Approve ${waiting}`], ['deny', `Deny ${waiting}`]);
  // What was chosen for another snapshot may be no way to go on from this one.
  const way = ways.some(([name]) => name === chosen) ? chosen : ways[0]![0];
  const begin = way === 'instead' ? placed.parent : placed;

  const run = async (event: FormEvent) => {
    event.preventDefault();
    setIsBusy(true);
    setError(undefined);
    try {
      const result = await write('fork', {
        tenant,
        agent,
        snapshotId: begin?.node.snapshotId,
        text: (way !== 'approve' && text.trim()) || undefined,
        answer: way === 'approve' || way === 'deny' ? way : undefined,
        model: model.trim() || undefined,
      });
      setError(result.error);
      if (result.snapshotId) set({ snapshot: result.snapshotId, from: placed.node.snapshotId, tab: 'changes' }, 'push');
    } catch (failure) {
      setError(factsOf(failure));
    }
    setIsBusy(false);
  };
  return (
    <form className="fork" onSubmit={(event) => void run(event)}>
      <fieldset>
        <legend>Where</legend>
        {ways.map(([name, words]) => (
          <label key={name}>
            <input type="radio" name="where" checked={way === name} onChange={() => choose(name)} />
            {words}
          </label>
        ))}
      </fieldset>
      <label>
        {way === 'deny' ? 'Reason' : 'Message'}
        <textarea
          rows={3}
          value={text}
          disabled={way === 'approve'}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <div className="pair">
        <label>
          Agent
          <select value={agent} onChange={(event) => setAgent(event.target.value)}>
            {info.agents.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Model
          <input placeholder="The agent’s own" value={model} onChange={(event) => setModel(event.target.value)} />
        </label>
      </div>
      <p className="empty">
        The turn runs in your app, with its tools. The branches of{' '}
        {layout.byId.size === 1 ? 'the session' : 'this session'} stay as they are.
      </p>
      {error && <Failure facts={error} title="The turn failed." />}
      <p className="choices">
        <button type="submit" className="primary" disabled={isBusy}>
          {isBusy ? 'Running…' : 'Run'}
        </button>
      </p>
    </form>
  );
}

/** The tools that wait for an answer at the end of a turn. */
function waitingIn({ messages }: SnapshotView): string {
  const requests = messages.at(-1)?.content.filter(({ metadata }) => metadata?.['interrupt']) ?? [];
  return requests.map(({ toolRequest }) => toolRequest?.name).join(', ');
}
