/** The place of the page: a conversation and a snapshot. It is in the URL, so that reload, back and forward work. Pure, except for the last place. */

/** Without a `sessionId`: a new conversation. Without a `snapshotId`: the conversation's latest message. */
export interface Place {
  sessionId?: string;
  snapshotId?: string;
  /** Whether the user went back to this point, so that the next message starts a branch. */
  wentBack?: boolean;
  /** Whether the page came here without the user, because the conversation continued. */
  follows?: boolean;
}

const LAST_PLACE = 'support.lastPlace';
const NEW = '#/new';

/** The place in the URL, else the last visited place. */
export function currentPlace(): Place {
  const place = parse(location.hash || localStorage.getItem(LAST_PLACE) || NEW);
  const { wentBack } = (history.state ?? {}) as { wentBack?: boolean };
  return wentBack ? { ...place, wentBack } : place;
}

/** Writes the place into the URL, as a new entry of the browser's history or instead of the current one. */
export function writePlace(place: Place, how: 'push' | 'replace'): void {
  const { wentBack } = place;
  localStorage.setItem(LAST_PLACE, format(place));
  if (how === 'push') history.pushState({ wentBack }, '', format(place));
  else history.replaceState({ wentBack }, '', format(place));
}

/** A part that can't be read counts as missing. */
export function parse(hash: string): Place {
  if (hash === NEW) return {};
  const [, sessionId, snapshotId] = hash.split('/').map(decode);
  return { ...(sessionId && { sessionId }), ...(sessionId && snapshotId && { snapshotId }) };
}

/** An id for a new conversation. `randomUUID` exists only on secure origins. */
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
