import { useState } from 'react';
import type { Sessions } from '../hooks/use-sessions.ts';
import type { Place } from '../logic/place.ts';
import { Problem } from '../../../../../ui/components/problem.tsx';
import { SessionItem } from './session-item.tsx';

interface Props {
  sessions: Sessions;
  current?: string;
  canRename: boolean;
  onOpen: (place: Place) => void;
}

export function SessionList({ sessions, current, canRename, onOpen }: Props) {
  const { items, showMore, problem, rename, remove } = sessions;
  const [wanted, setWanted] = useState('');
  const found = items.filter(({ title }) => title.toLowerCase().includes(wanted.trim().toLowerCase()));
  const removeAndLeave = async (sessionId: string, title: string) => {
    if (!window.confirm(`Delete “${title}” with all its branches?`)) return;
    await remove(sessionId);
    if (sessionId === current) onOpen({});
  };
  return (
    <nav className="sessions" aria-label="Conversations">
      <button type="button" className="new" onClick={() => onOpen({})}>
        New conversation
      </button>
      {items.length > 0 && (
        <input
          type="search"
          aria-label="Search conversations"
          placeholder="Search"
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
        />
      )}
      {problem && <Problem problem={{ text: problem }} />}
      {items.length === 0 && <p className="empty">Your conversations will be listed here.</p>}
      {items.length > 0 && found.length === 0 && (
        <p className="empty" role="status">
          No listed conversation has this title.
        </p>
      )}
      <ul>
        {found.map((session) => (
          <SessionItem
            key={session.sessionId}
            session={session}
            current={session.sessionId === current}
            onOpen={() => onOpen({ sessionId: session.sessionId })}
            onRename={canRename ? (title) => void rename(session.sessionId, title) : undefined}
            onRemove={(title) => void removeAndLeave(session.sessionId, title)}
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
