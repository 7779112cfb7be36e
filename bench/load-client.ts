/**
 * Keeps many sessions going at once over HTTP, each sending its next turn when the last stream has ended. In a process of its own, so that the
 * server's processor time is the server's. Started by `load.ts` only.
 */
import { Agent, request } from 'node:http';
import { answerRequests } from './answer-requests.ts';

/** What the parent may ask for. */
export type LoadClientRequest =
  /** Plays the sessions; answers the ms until the last has ended. */
  | { do: 'play'; port: number; sessions: number; turns: number }
  /** Of the last play, the ms that this share of the turns took at most. */
  | { do: 'quantile'; share: number }
  /** How many turns of the last play failed. */
  | { do: 'failures' };

const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
const QUESTION = 'Where is my order, please? '.repeat(11);
let times: number[] = [];
let failures = 0;

/** Sends a turn and reads its stream to the end; answers its last frame. */
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
