import { InMemoryMemoryStore } from 'genkitx-agents/memory';
import { memoryStoreConformance } from 'genkitx-agents/testing';
import { describe, it } from 'vitest';

memoryStoreConformance({
  name: 'InMemoryMemoryStore',
  runner: { describe, it },
  capabilities: new InMemoryMemoryStore().capabilities,
  tenants: true,
  open: async (options) => {
    const store = new InMemoryMemoryStore(options);
    return { a: store, b: store, close: () => store.close() };
  },
});
