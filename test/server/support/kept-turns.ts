import { gate, type Gate } from './agents.ts';
import { stubAgent, type StubAgent } from './stub-agent.ts';
import { done } from './stub-server.ts';

/** In ms: longer than any test takes. */
export const HOUR = 3_600_000;
export const STREAM_ID = 'x-genkit-stream-id';

/** The stream's text for these chunks. */
export const framesOf = (...messages: unknown[]) =>
  messages.map((message) => `data: ${JSON.stringify({ message })}\n\n`).join('');
/** Its last frame. */
export const resultFrame = (result: unknown) => `data: ${JSON.stringify({ result })}\n\n`;

/** An agent that streams 1, 2, waits, and streams 3. */
export function twoThenThree(): { agent: StubAgent; started: Gate; mayEnd: Gate; stopped: Gate } {
  const [started, mayEnd, stopped] = [gate(), gate(), gate()];
  const agent = stubAgent('a', async (_, { onChunk, abortSignal }) => {
    abortSignal.addEventListener('abort', stopped.open);
    onChunk?.(1);
    onChunk?.(2);
    started.open();
    await Promise.race([mayEnd.opened, stopped.opened]);
    abortSignal.throwIfAborted();
    onChunk?.(3);
    return done;
  });
  return { agent, started, mayEnd, stopped };
}
