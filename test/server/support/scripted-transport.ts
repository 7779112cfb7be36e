/** A transport with scripted turns, which records its calls. */
import type { AgentInit, AgentInput, AgentOutput, AgentStreamChunk, SessionSnapshot } from 'genkit/beta/client';
import type { AgentTransport, TransportCall } from '../../../src/client/transport.ts';

/** One turn: its chunks, then its output or its error. */
export interface Script {
  chunks?: AgentStreamChunk[];
  output?: AgentOutput;
  throws?: unknown;
  /** Ends the turn only when this settles; a rejection is thrown. */
  until?: Promise<unknown>;
}

export interface ScriptedTransport extends AgentTransport {
  /** The arguments of each turn. */
  readonly calls: { input: AgentInput; init: AgentInit; abortSignal: AbortSignal }[];
  /** Answers of `getSnapshot`, in order; the last one stays. */
  snapshots: (SessionSnapshot | undefined)[];
}

export function scriptedTransport(...scripts: Script[]): ScriptedTransport {
  const calls: ScriptedTransport['calls'] = [];
  return {
    calls,
    snapshots: [],
    runTurn(input, init, call) {
      const script = scripts[calls.length] ?? {};
      calls.push({ input, init: structuredClone(init), abortSignal: call.abortSignal });
      return play(script, call);
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
  { chunks = [], output = { finishReason: 'stop' }, throws, until }: Script,
  { abortSignal: signal, onChunk }: TransportCall,
): Promise<AgentOutput> {
  for (const chunk of chunks) onChunk(chunk);
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
  await Promise.race([until, aborted]);
  if (throws !== undefined) {
    throw throws;
  }
  return output;
}
