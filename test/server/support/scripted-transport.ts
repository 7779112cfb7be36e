/** A transport whose turns the test writes, and which remembers what it was asked. */
import type { AgentInit, AgentInput, AgentOutput, AgentStreamChunk, SessionSnapshot } from 'genkit/beta/client';
import type { AgentTransport } from '../../../src/client/transport.ts';

/** One turn: its chunks, then its output or what it throws. */
export interface Script {
  chunks?: AgentStreamChunk[];
  output?: AgentOutput;
  throws?: unknown;
  /** Ends the turn only when this settles; a rejection is thrown. */
  until?: Promise<unknown>;
}

export interface ScriptedTransport extends AgentTransport {
  /** What each turn was sent. */
  readonly calls: { input: AgentInput; init: AgentInit; abortSignal: AbortSignal }[];
  /** Answers of `getSnapshot`, in order; the last one stays. */
  snapshots: (SessionSnapshot | undefined)[];
}

export function scriptedTransport(...scripts: Script[]): ScriptedTransport {
  const calls: ScriptedTransport['calls'] = [];
  return {
    calls,
    snapshots: [],
    runTurn(input, init, { abortSignal }) {
      const script = scripts[calls.length] ?? {};
      calls.push({ input, init: structuredClone(init), abortSignal });
      const output = play(script, abortSignal);
      return { output, stream: chunksOf(script, output) };
    },
    getSnapshot() {
      const [next] = this.snapshots;
      if (this.snapshots.length > 1) {
        this.snapshots.shift();
      }
      return Promise.resolve(next);
    },
    abort: () => Promise.resolve('pending' as const),
  };
}

async function play(
  { output = { finishReason: 'stop' }, throws, until }: Script,
  signal: AbortSignal,
): Promise<AgentOutput> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
  await Promise.race([until, aborted]);
  if (throws !== undefined) {
    throw throws;
  }
  return output;
}

async function* chunksOf({ chunks = [] }: Script, output: Promise<AgentOutput>): AsyncGenerator<AgentStreamChunk> {
  yield* chunks;
  await output;
}
