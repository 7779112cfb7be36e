import { sessionStoreConformance } from 'genkitx-agents/testing';
import { describe, it } from 'vitest';
import { InMemorySessionStore } from 'genkitx-agents';
import { redacting } from 'genkitx-agents/privacy';

sessionStoreConformance({
  name: 'redacting(InMemorySessionStore), with rules that find nothing',
  runner: { describe, it },
  effort: 0.1,
  manifest: { capabilities: new InMemorySessionStore().capabilities, tenants: true, branching: true },
  open: async (options) => {
    const wrap = (inner = new InMemorySessionStore(options)) =>
      redacting(inner, { rules: [{ name: 'none', maxLength: 0, find: () => [] }], secret: 's'.repeat(32) });
    const medium = new InMemorySessionStore(options);
    const store = wrap(medium);
    return { a: store, b: wrap(medium), reopen: async () => wrap(), close: () => store.close() };
  },
});
