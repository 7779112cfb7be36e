/** One turn over HTTP: sent, or taken up again where it runs. */
import { remoteAgent, type AgentAPI } from 'genkitx-agents/client';
import type { SupportState } from '../../../agent/state.ts';
import { SUPPORT_URL } from './api.ts';
import { authHeaders } from './auth.ts';

const STREAM_ID = 'x-genkit-stream-id';

export interface TurnConnection {
  /** The turn runs already: its stream is asked for again, and nothing is sent. */
  streamId?: string;
  /** The server keeps the stream under this name. */
  onStreamId: (streamId: string) => void;
  /** Told after each request: whether the server is gone, or has no such stream any more. */
  onLost: (isLost: boolean) => void;
}

/** The agent, for one turn. A connection that breaks is opened again a few times; the turn goes on meanwhile. */
export function agentForTurn({ streamId, onStreamId, onLost }: TurnConnection): AgentAPI<SupportState> {
  let kept: string | null = null;
  const send: typeof fetch = async (url, init) => {
    if (url !== SUPPORT_URL) return fetch(url, init);
    const response = await fetch(url, streamId === undefined ? init : askAgain(streamId, init)).catch((error) => {
      onLost(kept !== null);
      throw error;
    });
    kept = response.headers.get(STREAM_ID) ?? kept;
    if (kept !== null) onStreamId(kept);
    onLost(response.status === 204);
    return response;
  };
  const reconnect = { attempts: 5, maxDelayMs: 1_000 };
  return remoteAgent<SupportState>({ url: SUPPORT_URL, headers: authHeaders, fetch: send, reconnect });
}

/** Without the input: the turn must not be run a second time. */
function askAgain(streamId: string, init: RequestInit | undefined): RequestInit {
  return { ...init, headers: { ...(init?.headers as Record<string, string>), [STREAM_ID]: streamId }, body: '{}' };
}
