import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InMemorySessionStore as GenkitInMemoryStore, type SessionStore } from 'genkit/beta';
import { FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { redacting } from 'genkitx-agents/privacy';
import { onTestFinished } from 'vitest';
import { scale } from '../../support/scale.ts';

/** A store for agents that are tested on every kind of store. */
export interface StoreKind {
  name: string;
  /** A new store, removed after the test. */
  // oxlint-disable-next-line typescript/no-explicit-any -- The store fits an agent of any state.
  make: () => Promise<SessionStore<any>>;
}

async function makeFileStore(): Promise<FileSessionStore> {
  const dir = await mkdtemp(join(tmpdir(), 'agents-'));
  const store = new FileSessionStore(dir);
  onTestFinished(async () => {
    await store.close();
    await rm(dir, { recursive: true, force: true });
  });
  return store;
}

function makeRedactingStore() {
  const rules = [{ name: 'none', maxLength: 0, find: async () => [] }];
  return redacting(new InMemorySessionStore(), { rules, secret: 's'.repeat(32) });
}

/** The stores that agents are tested on. */
export const ALL_STORE_KINDS: readonly StoreKind[] = [
  { name: "Genkit's InMemorySessionStore", make: async () => new GenkitInMemoryStore() },
  { name: 'our InMemorySessionStore', make: async () => new InMemorySessionStore() },
  { name: 'our FileSessionStore', make: makeFileStore },
  { name: 'redacting(our InMemorySessionStore), rules that find nothing', make: async () => makeRedactingStore() },
];

/** The same, in the short form without files and without wrappers: for agents, which know nothing of how a store keeps its snapshots. */
export const STORE_KINDS = ALL_STORE_KINDS.slice(0, scale(2, 4));

/** The same with a store that changes the saved values: for tests that depend on the values read back. */
export const CHANGING_STORE_KINDS = [...new Set([...STORE_KINDS, ALL_STORE_KINDS.at(-1)!])];
