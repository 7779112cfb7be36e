import type { Place } from '../place.ts';
import type { Sessions } from '../use-sessions.ts';
import { Problem } from './problem.tsx';
import { SessionItem } from './session-item.tsx';

interface Props {
  sessions: Sessions;
  current?: string;
  disabled: boolean;
  onOpen: (place: Place) => void;
}

export function SessionList({ sessions, current, disabled, onOpen }: Props) {
  const { items, showMore, problem, remove } = sessions;
  const removeAndLeave = async (sessionId: string, title: string) => {
    if (!window.confirm(`Delete “${title}” with all its branches?`)) return;
    await remove(sessionId);
    if (sessionId === current) onOpen({});
  };
  return (
    <nav className="sessions" aria-label="Conversations">
      <button type="button" className="new" disabled={disabled} onClick={() => onOpen({})}>
        New conversation
      </button>
      {problem && <Problem text={problem} />}
      {items.length === 0 && <p className="empty">Your conversations will be listed here.</p>}
      <ul>
        {items.map((session) => (
          <SessionItem
            key={session.sessionId}
            session={session}
            current={session.sessionId === current}
            disabled={disabled}
            onOpen={() => onOpen({ sessionId: session.sessionId, snapshotId: session.leafId })}
            onRemove={() => void removeAndLeave(session.sessionId, session.title)}
          />
        ))}
      </ul>
      {showMore && (
        <button type="button" className="more" onClick={showMore}>
          Older conversations
        </button>
      )}
    </nav>
  );
}
