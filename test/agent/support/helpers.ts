import type { Agent, AgentInit, AgentInput, AgentOutput, AgentStreamChunk, SessionStore } from 'genkitx-agents';
import type { ActionContext, MessageData } from 'genkit';
import { collect } from '../../support/collect.ts';

/** The result of one call of an agent's action. */
export interface Call {
  chunks: AgentStreamChunk[];
  output: AgentOutput;
}

/** A user's message. */
export function user(text: string): MessageData {
  return { role: 'user', content: [{ text }] };
}

/** A model's message. */
export function model(text: string): MessageData {
  return { role: 'model', content: [{ text }] };
}

/** Calls an agent's action with inputs (a string is a user's message), closes the stream, and reads it to its end. */
export async function call<State>(
  agent: Agent<State>,
  inputs: (string | AgentInput)[],
  init: AgentInit = {},
  options: { context?: ActionContext; abortSignal?: AbortSignal } = {},
): Promise<Call> {
  const stream = agent.streamBidi(init, options);
  for (const input of inputs) stream.send(typeof input === 'string' ? { message: user(input) } : input);
  stream.close();
  const [output, chunks] = await Promise.all([stream.output, collect(stream.stream)]);
  return { chunks, output };
}

/** The kinds of the chunks, in order. */
export function kinds(chunks: AgentStreamChunk[]): string[] {
  return chunks.flatMap((chunk) => Object.keys(chunk));
}

/** One call of a store's method. */
export interface StoreCall {
  method: 'getSnapshot' | 'saveSnapshot';
  context: ActionContext | undefined;
}

/** A store that delegates to another and records its calls; `before` runs first and may throw. */
export function recordingStore<S>(
  inner: SessionStore<S>,
  before: (call: StoreCall) => void = () => {},
): { store: SessionStore<S>; calls: StoreCall[] } {
  const calls: StoreCall[] = [];
  const note = (call: StoreCall) => {
    calls.push(call);
    before(call);
  };
  const store: SessionStore<S> = {
    getSnapshot: async (lookup) => {
      note({ method: 'getSnapshot', context: lookup.context });
      return inner.getSnapshot(lookup);
    },
    saveSnapshot: async (snapshotId, mutator, options) => {
      note({ method: 'saveSnapshot', context: options?.context });
      return inner.saveSnapshot(snapshotId, mutator, options);
    },
  };
  return { store, calls };
}

/** A promise, and the function that settles it. */
export interface Deferred<T = void> {
  promise: Promise<T>;
  resolve: (value: T) => void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
