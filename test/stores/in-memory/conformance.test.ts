import { InMemorySessionStore } from 'genkitx-agents';
import { sessionStoreConformance } from 'genkitx-agents/testing';
import { describe, it } from 'vitest';
import { isTorture } from '../../support/scale.ts';

sessionStoreConformance({
  name: 'InMemorySessionStore',
  runner: { describe, it },
  manifest: { capabilities: new InMemorySessionStore().capabilities, tenants: true, branching: true },
  effort: isTorture ? 1 : 0.1,
  open: async (options) => {
    // The medium is the store object itself, so both handles are one.
    const store = new InMemorySessionStore(options);
    return { a: store, b: store, reopen: async () => new InMemorySessionStore(options), close: () => store.close() };
  },
});
