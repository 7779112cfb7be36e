import { genkit, type SessionStore } from 'genkit/beta';
import { defineAgent } from 'genkitx-agents';
import { vi } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { user } from './helpers.ts';

interface Worker {
  background?: object;
  /** Answers of the model. Default: none, it never answers. */
  answer?: string | (() => string | Promise<string>);
  name?: string;
}

/** One process: its own Genkit instance and agent on the shared store. */
export function worker(store: SessionStore, { background, answer, name = 'worker' }: Worker = {}) {
  const ai = genkit({});
  const calls: { release: (text: string) => void; signal: AbortSignal }[] = [];
  const scripted = scriptedModel(ai, {
    otherwise:
      answer ?? (({ abortSignal }) => new Promise((resolve) => calls.push({ release: resolve, signal: abortSignal }))),
  });
  const agent = defineAgent(ai, { name, model: scripted.name, store, ...(background && { background }) });
  const called = (n: number) => vi.waitUntil(() => calls[n - 1], { interval: 1 });
  const settled = (snapshotId: string) =>
    vi.waitUntil(
      async () => {
        const snapshot = await agent.getSnapshot(snapshotId);
        return snapshot && snapshot.status !== 'pending' && snapshot.status !== 'expired' ? snapshot : undefined;
      },
      { interval: 2 },
    );
  return { ai, agent, scripted, called, settled };
}

/** An input whose turn continues in the background. */
export const detached = (text: string) => ({ message: user(text), detach: true });
