/**
 * Runs many sessions at once over HTTP. Each sends its next turn when the last stream has ended. It has its own process, so that the server's
 * processor time does not include it. Started by `load.ts` only.
 */
import { Agent, request } from 'node:http';
import { answerRequests } from './answer-requests.ts';

/** The requests of the parent. */
export type LoadClientRequest =
  /** Plays the sessions; returns the ms until the last has ended. */
  | { do: 'play'; port: number; sessions: number; turns: number }
  /** Returns the ms that this share of the turns of the last play took at most. */
  | { do: 'quantile'; share: number }
  /** Returns the number of failed turns of the last play. */
  | { do: 'failures' };

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
const QUESTION = 'Where is my order, please? '.repeat(11);
let times: number[] = [];
let failures = 0;

/** Sends a turn and reads its stream to the end; returns its last frame. */
function sendTurn(port: number, sessionId: string | undefined): Promise<string> {
  const body = JSON.stringify({
    data: { message: { role: 'user', content: [{ text: QUESTION }] } },
    init: sessionId === undefined ? {} : { sessionId },
  });
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    'content-length': Buffer.byteLength(body),
  };
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path: '/agent', method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.on('end', () => resolve(text.trimEnd().split('\n\n').at(-1)!));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

async function playSession(port: number, turns: number): Promise<void> {
  let sessionId: string | undefined;
  for (let turn = 0; turn < turns; turn++) {
    const start = performance.now();
    const last = await sendTurn(port, sessionId).catch(String);
    times.push(performance.now() - start);
    const { result } = (last.startsWith('data: ') ? JSON.parse(last.slice(6)) : {}) as {
      result?: { sessionId?: string; finishReason?: string };
    };
    if (result?.finishReason === 'stop') sessionId = result.sessionId;
    else failures++;
  }
}

async function play({ port, sessions, turns }: LoadClientRequest & { do: 'play' }): Promise<number> {
  times = [];
  failures = 0;
  const start = performance.now();
  await Promise.all(Array.from({ length: sessions }, () => playSession(port, turns)));
  const ms = performance.now() - start;
  times.sort((a, b) => a - b);
  return ms;
}

answerRequests((asked: LoadClientRequest) => {
  switch (asked.do) {
    case 'play':
      return play(asked);
    case 'quantile':
      return times[Math.min(times.length - 1, Math.floor(asked.share * times.length))]!;
    case 'failures':
      return failures;
  }
});
