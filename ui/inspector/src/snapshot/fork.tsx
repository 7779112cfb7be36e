import type { FormEvent } from 'react';
import type { SnapshotView } from '../../../../src/inspector/api.ts';
import { factsOf, write } from '../api/requests.ts';
import { Failure } from '../components/failure.tsx';
import { markOf } from '../logic/status.ts';
import type { PlacedNode } from '../logic/tree-layout.ts';
import { usePage } from '../page.ts';
import { turnName } from '../tree/turn-box.tsx';
import { useAttempt, type Way } from './attempts.ts';

interface Props {
  placed: PlacedNode;
  view: SnapshotView;
}

/** Starts a new branch: continues from the snapshot, or replaces its turn. */
export function Fork({ placed, view }: Props) {
  const { info, place, tenant, set } = usePage();
  const [attempt, change] = useAttempt(`${tenant} ${place.path.join('/')}`);
  const author = info.agents.find((name) => name === view.agent || info.agents.length === 1) ?? '';
  const { agent = author, way: chosen, text, model = '', isBusy = false, error } = attempt;
  // After a selection, the view is still that of the previous snapshot for a moment.
  const waiting = markOf(placed.node) === 'waiting' && waitingIn(view);
  const ways: [way: Way, words: string][] = [];
  if (placed.parent) ways.push(['instead', `In place of ${turnName(placed)}`]);
  ways.push(['after', `After ${turnName(placed)}`]);
  if (waiting) ways.push(['approve', `Approve ${waiting}`], ['deny', `Deny ${waiting}`]);
  // The choice for another snapshot may not be available for this one.
  const way = ways.some(([name]) => name === chosen) ? chosen : ways[0]![0];
  const begin = way === 'instead' ? placed.parent : placed;
  const isMessage = way === 'instead' || way === 'after';
  const isReady = agent !== '' && (!isMessage || text.trim() !== '' || begin?.node.status === 'aborted');

  const run = async (event: FormEvent) => {
    event.preventDefault();
    change({ isBusy: true, error: undefined });
    try {
      const result = await write('fork', {
        tenant,
        agent,
        snapshotId: begin?.node.snapshotId,
        text: (way !== 'approve' && text.trim()) || undefined,
        answer: isMessage ? undefined : way,
        model: model.trim() || undefined,
      });
      change(result.error ? { isBusy: false, error: result.error } : undefined);
      if (result.snapshotId) set({ snapshot: result.snapshotId, from: placed.node.snapshotId, tab: 'changes' }, 'push');
    } catch (failure) {
      change({ isBusy: false, error: factsOf(failure) });
    }
  };
  return (
    <form className="fork" onSubmit={(event) => void run(event)}>
      <fieldset>
        <legend>Where</legend>
        {ways.map(([name, words]) => (
          <label key={name}>
            <input type="radio" name="where" checked={way === name} onChange={() => change({ way: name })} />
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
          onChange={(event) => change({ text: event.target.value })}
        />
      </label>
      <div className="pair">
        <label>
          Agent
          <select value={agent} onChange={(event) => change({ agent: event.target.value })}>
            {author === '' && <option value="">Choose an agent</option>}
            {info.agents.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Model
          <input
            placeholder="The agent’s own"
            value={model}
            onChange={(event) => change({ model: event.target.value })}
          />
        </label>
      </div>
      <p className="empty">
        Another model is refused unless the agent’s <code>turnOverrides.models</code> has it.
      </p>
      <p className="empty">
        The turn runs in your app, with its tools. It becomes the latest branch of the session: the user continues from
        it, and its messages can be learned as memories. The other branches do not change.
      </p>
      {error && <Failure facts={error} title="The turn failed." />}
      <p className="choices">
        <button type="submit" className="primary" disabled={isBusy || !isReady}>
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
