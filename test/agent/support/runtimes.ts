import { genkit as genkitOfGenkit } from 'genkit/beta';
import { genkit, type AgentsGenkit } from 'genkitx-agents';
import { test } from 'vitest';

/** Makes a `Genkit` instance whose `defineAgent` and its like are one runtime's. */
export type MakeGenkit = () => AgentsGenkit;

/**
 * A test of something that Genkit's own runtime gets wrong. It runs on ours, where it has to pass, and on Genkit's, where it has to fail:
 * when it no longer fails, Genkit has fixed the fault and the test shows no difference.
 */
export function faultTest(name: string, body: (makeGenkit: MakeGenkit) => Promise<void>): void {
  test(name, () => body(() => genkit({})));
  test.fails(`${name} (fails on Genkit's runtime)`, () => body(() => genkitOfGenkit({}) as AgentsGenkit));
}
