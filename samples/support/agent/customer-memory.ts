import type { AgentsGenkit } from 'genkitx-agents';
import { memoryManager, type MemoryManager, type MemoryStore } from 'genkitx-agents/memory';
import type { SupportModel } from '../models/choose-model.ts';

export interface CustomerMemoryOptions {
  store: MemoryStore;
  model: SupportModel;
  /** Returns the part of a message that the shop may store. */
  redact: (text: string) => Promise<string>;
}

/** The shop's memory of its customers. The model extracts the facts; the offline model does it by rules. */
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
