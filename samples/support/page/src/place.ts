/** Where the page is: a conversation and a point of it, kept in the address so that reload, back and forward work. */
import { useCallback, useEffect, useState } from 'react';

/** Without a `sessionId`: a conversation that has not begun. Without a `snapshotId`: the conversation's latest message. */
export interface Place {
  sessionId?: string;
  snapshotId?: string;
}

const LAST_PLACE = 'support.lastPlace';
const NEW = '#/new';

export function usePlace(): [Place, (place: Place) => void] {
  const [place, setPlace] = useState(firstPlace);

  useEffect(() => {
    // The address always says where the page is, also when it was opened without saying.
    if (!location.hash) history.replaceState(undefined, '', format(firstPlace()));
    const follow = () => setPlace(parse(location.hash));
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }, []);

  const go = useCallback((next: Place) => {
    localStorage.setItem(LAST_PLACE, format(next));
    location.hash = format(next);
  }, []);

  return [place, go];
}

/** The place in the address, else the last one visited. */
function firstPlace(): Place {
  return parse(location.hash || localStorage.getItem(LAST_PLACE) || NEW);
}

/** What can't be read names no conversation. */
export function parse(hash: string): Place {
  if (hash === NEW) return {};
  const [, sessionId, snapshotId] = hash.split('/').map(decode);
  return { ...(sessionId && { sessionId }), ...(sessionId && snapshotId && { snapshotId }) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}

function format({ sessionId, snapshotId }: Place): string {
  if (!sessionId) return NEW;
  return ['#', sessionId, snapshotId]
    .filter((part) => part !== undefined)
    .map((part, index) => (index ? encodeURIComponent(part) : part))
    .join('/');
}
