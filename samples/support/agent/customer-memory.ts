import type { AgentsGenkit } from 'genkitx-agents';
import { memoryManager, type MemoryManager, type MemoryStore } from 'genkitx-agents/memory';
import type { SupportModel } from '../models/choose-model.ts';

export interface CustomerMemoryOptions {
  store: MemoryStore;
  model: SupportModel;
  /** What the shop may write down of a text that was said. */
  redact: (text: string) => Promise<string>;
}

/** What the shop remembers of its customers from one conversation to the next. The model learns it; the offline stand-in has rules for that. */
export function customerMemory(ai: AgentsGenkit, { store, model, redact }: CustomerMemoryOptions): MemoryManager {
  return memoryManager(ai, {
    store,
    topics: [
      'USER_PREFERENCES',
      'EXPLICIT_INSTRUCTIONS',
      { label: 'delivery', description: 'How, when and where the customer wants parcels to be delivered.' },
    ],
    redact,
    ...(model.memories ?? { model: model.name }),
  });
}
