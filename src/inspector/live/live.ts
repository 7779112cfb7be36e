import type { LiveEvents } from '../api.ts';
import { failureOf } from '../http/answers.ts';
import { eventStream } from '../http/event-stream.ts';
import type { Params } from '../http/params.ts';
import { conditionsOf, rowsOf } from '../read/sessions.ts';
import type { Source } from '../source.ts';
import { SessionWatch } from './session-watch.ts';

/** Sends one of the events. */
export type SendLive = <K extends keyof LiveEvents>(name: K, data: LiveEvents[K]) => void;

/** Polls the store once, and sends the changes since the poll before. */
type Poll = (send: SendLive) => Promise<void>;

/** Server-sent events about a session, or about the list. */
export function answerLive(
  source: Source,
  params: Params,
  { pauseMs, signal }: { pauseMs: number; signal: AbortSignal },
): Response {
  const sessionId = params.text('sessionId');
  const poll = sessionId === undefined ? pollList(source, params) : pollSession(source, params, sessionId);
  return eventStream(
    async (send) => {
      try {
        await poll(send);
      } catch (error) {
        send('failure', failureOf(error));
      }
    },
    { pauseMs, signal },
  );
}

function pollSession(source: Source, params: Params, sessionId: string): Poll {
  const leafId = params.text('leafId');
  const pending = params.texts('pending').slice(0, 20);
  const watch = new SessionWatch(source, { sessionId, leafId, follow: params.isSet('follow'), pending });
  return (send) => watch.poll(send);
}

/** How many sessions one poll of the list reads. */
const NEWEST = 100;

function pollList(source: Source, params: Params): Poll {
  const store = source.having('list');
  const matches = conditionsOf(params) ?? (() => true);
  let known: ReadonlyMap<string, string> = new Map();
  return async (send) => {
    const { items } = await store.listSessions({ ...source.caller, limit: NEWEST });
    const rows = await rowsOf(source, items);
    const texts = new Map(rows.map((row) => [row.sessionId, JSON.stringify(row)]));
    // The first poll sends all: the page read its list earlier, and may lack later saves.
    const changed = rows.filter(({ sessionId }) => known.get(sessionId) !== texts.get(sessionId));
    known = texts;
    if (changed.length > 0) {
      send('sessions', { items: changed.filter(matches), written: changed.map(({ sessionId }) => sessionId) });
    }
  };
}
