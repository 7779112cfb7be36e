import type { AgentsGenkit } from 'genkitx-agents';
import { InMemoryMemoryStore, memoryManager, type MemoryManager } from 'genkitx-agents/memory';

/** A memory of customers that learns nothing by itself, so that it never calls the model of a test. */
export function emptyMemory(ai: AgentsGenkit): MemoryManager {
  return memoryManager(ai, { store: new InMemoryMemoryStore(), extract: () => [], worker: false });
}
