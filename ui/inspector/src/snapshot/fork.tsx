import { useState, type FormEvent } from 'react';
import type { InspectorError } from '../../../../src/inspector/api.ts';
import { factsOf, write } from '../api/requests.ts';
import { Failure } from '../components/failure.tsx';
import type { PlacedNode, TreeLayout } from '../logic/tree-layout.ts';
import { usePage } from '../page.ts';
import { turnName } from '../tree/turn-box.tsx';

/** Continues from the snapshot, or says something else in its turn: a branch, shown beside this one. */
export function Fork({ placed, layout }: { placed: PlacedNode; layout: TreeLayout }) {
  const { info, tenant, set } = usePage();
  const [agent, setAgent] = useState(info.agents[0]!);
  const [isInstead, setIsInstead] = useState(placed.parent !== undefined);
  const [text, setText] = useState('');
  const [model, setModel] = useState('');
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<InspectorError>();
  const begin = isInstead ? placed.parent : placed;

  const run = async (event: FormEvent) => {
    event.preventDefault();
    setIsBusy(true);
    setError(undefined);
    try {
      const result = await write('fork', {
        tenant,
        agent,
        snapshotId: begin?.node.snapshotId,
        text: text.trim() || undefined,
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
        <label>
          <input
            type="radio"
            name="where"
            checked={isInstead}
            disabled={!placed.parent}
            onChange={() => setIsInstead(true)}
          />
          In place of {turnName(placed)}
        </label>
        <label>
          <input type="radio" name="where" checked={!isInstead} onChange={() => setIsInstead(false)} />
          After {turnName(placed)}
        </label>
      </fieldset>
      <label>
        Message
        <textarea rows={3} value={text} onChange={(event) => setText(event.target.value)} />
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
