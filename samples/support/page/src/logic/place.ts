/** Where the page is: a conversation and a point of it, kept in the address so that reload, back and forward work. Pure, but for the last place. */

/** Without a `sessionId`: a conversation that has not begun. Without a `snapshotId`: the conversation's latest message. */
export interface Place {
  sessionId?: string;
  snapshotId?: string;
  /** The user went back to this point: the next message starts a branch. */
  wentBack?: boolean;
  /** The page came here by itself, since the conversation did. */
  follows?: boolean;
}

const LAST_PLACE = 'support.lastPlace';
const NEW = '#/new';

/** The place in the address, else the last one visited. */
export function currentPlace(): Place {
  const place = parse(location.hash || localStorage.getItem(LAST_PLACE) || NEW);
  const { wentBack } = (history.state ?? {}) as { wentBack?: boolean };
  return wentBack ? { ...place, wentBack } : place;
}

/** Writes the place into the address, as a new entry of the browser's history or in place of the present one. */
export function writePlace(place: Place, how: 'push' | 'replace'): void {
  const { wentBack } = place;
  localStorage.setItem(LAST_PLACE, format(place));
  if (how === 'push') history.pushState({ wentBack }, '', format(place));
  else history.replaceState({ wentBack }, '', format(place));
}

/** What can't be read names no conversation. */
export function parse(hash: string): Place {
  if (hash === NEW) return {};
  const [, sessionId, snapshotId] = hash.split('/').map(decode);
  return { ...(sessionId && { sessionId }), ...(sessionId && snapshotId && { snapshotId }) };
}

/** A name for a conversation that is about to begin. `randomUUID` is there on secure origins alone. */
export function newSessionId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
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
