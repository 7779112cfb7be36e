import type { MessageData } from 'genkit';
import { genkit } from 'genkitx-agents';
import {
  InMemoryMemoryStore,
  memoryManager,
  type Memory,
  type MemoryManagerOptions,
  type MemoryReport,
  type MemoryStore,
} from 'genkitx-agents/memory';
import { expect, onTestFinished } from 'vitest';
import { NOTES } from '../../../src/memory/pipeline/pipeline.ts';
import { INDEX_KIND } from '../../../src/memory/search/index-shards.ts';
import { scriptedModel, type ScriptedReply } from '../../support/scripted-model.ts';

export const ADA = { auth: { uid: 'ada' } };

/** Long enough for a busy machine. */
export const PATIENT = { deadlineMs: 60_000 };

/** Makes a manager with a scripted model, an in-memory store, and a clock that the test moves. */
export function setUp({
  replies = [],
  otherwise,
  ...options
}: Partial<MemoryManagerOptions> & { replies?: ScriptedReply[]; otherwise?: ScriptedReply } = {}) {
  const ai = genkit();
  const model = scriptedModel(ai, { replies, ...(otherwise !== undefined && { otherwise }) });
  const clock = { now: Date.parse('2026-01-01T00:00:00Z') };
  const reports: MemoryReport[] = [];
  const store: MemoryStore = options.store ?? new InMemoryMemoryStore();
  const memory = memoryManager(ai, {
    model: model.name,
    now: () => clock.now,
    random: () => 0.5,
    onReport: (report) => reports.push(report),
    ...options,
    store,
  });
  const search = memory.search.bind(memory);
  memory.search = (request) => search({ ...PATIENT, ...request });
  // A job that is still running would set timers in the next test.
  onTestFinished(() => void memory.close());
  const scope = memory.scopeFor('user', { context: ADA });
  return { ai, model, clock, reports, store, memory, scope };
}

/** The model's answer to an extraction. */
export function extraction(...memories: (string | object)[]): ScriptedReply {
  const full = memories.map((one) =>
    typeof one === 'string' ? { text: one, topics: ['USER_PREFERENCES'] } : { topics: ['USER_PREFERENCES'], ...one },
  );
  return JSON.stringify({ memories: full });
}

/** The model's answer to a consolidation. */
export function operations(...list: object[]): ScriptedReply {
  return JSON.stringify({ operations: list });
}

export function user(text: string): MessageData {
  return { role: 'user', content: [{ text }] };
}

export function model(text: string): MessageData {
  return { role: 'model', content: [{ text }] };
}

/** All memories of the user, including invalid ones. */
export async function all(store: MemoryStore): Promise<Memory[]> {
  const { items } = await store.query(ID, { filter: { includeInvalid: true }, k: 1000 });
  return items.map(({ memory }) => memory);
}

/** The texts of the valid memories, sorted. */
export async function textsOf(store: MemoryStore, userId = 'ada'): Promise<string[]> {
  const { items } = await store.query({ scope: 'user', appName: 'default', userId }, { k: 1000 });
  return items.map(({ memory }) => memory.text).toSorted();
}

/** Waits for a condition without advancing timers. */
export async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !condition(); i++) await new Promise(setImmediate);
  expect(condition()).toBe(true);
}

export const ID = { scope: 'user', appName: 'default', userId: 'ada' } as const;
export const DAY = 86_400_000;

/** All data that a store has of the scope, including the saved search index. */
export async function everything(store: MemoryStore): Promise<string> {
  const { items } = await store.query(ID, { filter: { includeInvalid: true }, k: 1000 });
  const revisions = await Promise.all(items.map(({ memory }) => store.revisions(ID, memory.id)));
  const notes = await Promise.all([...Object.values(NOTES), INDEX_KIND].map((kind) => store.notes(ID, kind)));
  return JSON.stringify([items, revisions, notes, (await store.listJobs({ limit: 1000 })).items]);
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** The homes of a user. Each is a memory, and each replaces the previous one. */
export async function livingIn(...cities: string[]) {
  const set = setUp({ otherwise: operations({ new: 1, op: 'DELETE', existing: [1] }) });
  for (const city of cities) {
    set.clock.now += 1000;
    const memories = [`The user lives in ${city}.`];
    await set.memory.ingest({ scope: set.scope, source: { id: city }, memories, wait: true });
  }
  const { items } = await set.store.query(ID, { filter: { includeInvalid: true } });
  const idOf = (word: string) => items.find((hit) => hit.memory.text.includes(word))!.memory.id;
  return { ...set, idOf };
}
