import type { InspectorStart, SessionRow } from '../../../../src/inspector/api.ts';
import { Heading } from '../components/heading.tsx';
import { Failure } from '../components/failure.tsx';
import { StatusMark } from '../components/status-mark.tsx';
import { useDraft } from '../components/use-draft.ts';
import { useNow } from '../components/use-now.ts';
import { VirtualList } from '../components/virtual-list.tsx';
import { MARK_NAMES, MARKS, markOf } from '../logic/status.ts';
import { ago, count, counted, time } from '../logic/words.ts';
import { usePage } from '../page.ts';
import { AGES, hasConditions, queryOf } from './sessions-query.ts';
import { useSessions } from './use-sessions.ts';

/** All sessions, the one written last first. */
export function SessionsView({ first }: { first: InspectorStart | undefined }) {
  const { place, href } = usePage();
  const query = queryOf(place.query);
  const { lines, isLoading, hasMore, looked, error, more, again } = useSessions(query, first);
  const now = useNow(10_000);
  return (
    <section className="list-view" aria-labelledby="view-title">
      <Heading className="unseen">Sessions</Heading>
      <Filters lines={lines} />
      {error && <Failure facts={error} onRetry={again} />}
      {!isLoading && lines.length === 0 && !error && (
        <div className="nothing">
          {hasConditions(query) ? (
            <p>
              No match in {counted(looked, 'session')}.{' '}
              {hasMore && (
                <button type="button" onClick={more}>
                  Search further
                </button>
              )}
            </p>
          ) : (
            <p>No sessions yet. They appear here as soon as an agent saves a turn.</p>
          )}
        </div>
      )}
      <VirtualList
        label="Sessions"
        items={lines}
        rowHeight={60}
        keyOf={({ sessionId }) => sessionId}
        hrefOf={({ sessionId }) => href(['session', sessionId])}
        onEnd={more}
      >
        {(line) => <SessionRow line={line} now={now} />}
      </VirtualList>
    </section>
  );
}

function SessionRow({ line, now }: { line: SessionRow; now: number }) {
  const { sessionId, title, agent, ownerId, snapshotCount, leafCount, tokens, updatedAt, status } = line;
  return (
    <>
      <StatusMark mark={markOf({ status })} />
      <b className={title ? undefined : 'id'}>{title ?? sessionId}</b>
      <small className="facts">{[title && sessionId, agent, ownerId].filter(Boolean).join(' · ')}</small>
      <small className="figures">
        {counted(snapshotCount, 'turn')}
        {leafCount > 1 && ` · ${counted(leafCount, 'branch', 'branches')}`}
        {tokens !== undefined && ` · ${count(tokens)} tokens`}
      </small>
      <time dateTime={updatedAt} title={time(updatedAt)}>
        {ago(updatedAt, now)}
      </time>
    </>
  );
}

/** The conditions, which are in the address. */
function Filters({ lines }: { lines: readonly SessionRow[] }) {
  const { info, place, set } = usePage();
  const { search = '', status = '', agent = '', age = '', tokens = '' } = place.query;
  const [draft, setDraft] = useDraft(search, (text) => set({ search: text }));
  const agents = new Set([...info.agents, ...lines.flatMap((line) => line.agent ?? []), ...(agent ? [agent] : [])]);
  return (
    <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        aria-label="Search sessions"
        placeholder="Search by id, title, owner or agent"
        value={draft}
        onChange={(event) => setDraft(event.target.value)}
      />
      <Choice label="Status" value={status} onChoose={(value) => set({ status: value })} none="Any status">
        {MARKS.filter((mark) => mark !== 'waiting').map((mark) => [mark, MARK_NAMES[mark]])}
      </Choice>
      <Choice label="Agent" value={agent} onChoose={(value) => set({ agent: value })} none="Any agent">
        {[...agents].sort().map((name) => [name, name])}
      </Choice>
      <Choice label="Age" value={age} onChoose={(value) => set({ age: value })} none="Any time">
        {AGES.map(([value, label]) => [value, label])}
      </Choice>
      <Choice label="Tokens" value={tokens} onChoose={(value) => set({ tokens: value })} none="Any size">
        {[1000, 10_000, 100_000].map((least) => [String(least), `${count(least)}+ tokens`])}
      </Choice>
    </form>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  none: string;
  onChoose: (value: string) => void;
  children: readonly (readonly [value: string, label: string])[];
}

function Choice({ label, value, none, onChoose, children }: ChoiceProps) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChoose(event.target.value)}>
      <option value="">{none}</option>
      {children.map(([key, name]) => (
        <option key={key} value={key}>
          {name}
        </option>
      ))}
    </select>
  );
}
