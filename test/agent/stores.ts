import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { InMemorySessionStore as GenkitInMemoryStore, type SessionStore } from 'genkit/beta';
import { onTestFinished } from 'vitest';

/** A store for agents that are tested on every kind of store. */
export interface StoreKind {
  name: string;
  /** A new store, gone when the test is over. */
  // oxlint-disable-next-line typescript/no-explicit-any -- The store fits an agent of any state.
  make: () => Promise<SessionStore<any>>;
}

const OURS = [
  { name: 'InMemorySessionStore', file: 'stores/in-memory/in-memory-session-store.ts' },
  { name: 'FileSessionStore', file: 'stores/file/file-session-store.ts' },
];

async function makeOurs(name: string, path: string): Promise<SessionStore> {
  const module = (await import(pathToFileURL(path).href)) as Record<string, new (dir?: string) => SessionStore>;
  const Store = module[name];
  if (!Store) throw new Error(`${path} does not export ${name}`);
  if (name !== 'FileSessionStore') return new Store();
  const dir = await mkdtemp(join(tmpdir(), 'agents-'));
  const store = new Store(dir);
  onTestFinished(async () => {
    await (store as { close?: () => Promise<void> }).close?.();
    await rm(dir, { recursive: true, force: true });
  });
  return store;
}

/** The stores that agents are tested on. */
export const STORE_KINDS: readonly StoreKind[] = [
  { name: "Genkit's InMemorySessionStore", make: async () => new GenkitInMemoryStore() },
  ...OURS.flatMap(({ name, file }) => {
    const path = join(import.meta.dirname, '../..', file);
    return existsSync(path) ? [{ name: `our ${name}`, make: () => makeOurs(name, path) }] : [];
  }),
];
