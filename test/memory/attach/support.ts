import type { GenerateRequest } from 'genkit';
import { defineAgent, InMemorySessionStore, type AgentConfig } from 'genkitx-agents';
import type { AttachOptions, MemoryDraft, MemoryScope, MemoryManager, MemoryTurnReport } from 'genkitx-agents/memory';
import { scriptedModel, type ScriptedReply } from '../../support/scripted-model.ts';
import { ADA, operations, PATIENT, setUp } from '../pipeline/support.ts';

export { ADA, textsOf, user } from '../pipeline/support.ts';
export const BOB = { auth: { uid: 'bob' } };

/** An agent with a memory, whose model answers `ok`. The memory's model never relates two facts to each other. */
export function agentWithMemory({
  memory: settings = {},
  attach = {},
  replies = [],
  ...config
}: Partial<Omit<AgentConfig, 'memory'>> & {
  memory?: Parameters<typeof setUp>[0];
  attach?: AttachOptions;
  replies?: ScriptedReply[];
} = {}) {
  const { ai, memory, scope, store: memories, ...rest } = setUp({ otherwise: operations(), ...settings });
  const said = scriptedModel(ai, { name: 'speaker', replies, otherwise: 'ok' });
  const reports: MemoryTurnReport[] = [];
  const attached = memory.attach({
    onReport: (report) => reports.push(report),
    ...attach,
    preload: { ...PATIENT, ...attach.preload },
  });
  const sessions = new InMemorySessionStore();
  const agent = defineAgent(ai, {
    name: 'support',
    model: said.name,
    system: 'Be brief.',
    store: sessions,
    ...config,
    memory: attached,
  });
  const chat = (context: object = ADA, init = {}) => agent.chat(init, { context });
  return { ...rest, ai, memory, scope, memories, said, turns: reports, attached, agent, sessions, chat };
}

/** Formats the messages of a request as lines, each with its role. */
export function linesOf({ messages }: GenerateRequest): string[] {
  return messages.map(({ role, content }) => `${role}: ${content.map(({ text }) => text ?? '?').join(' + ')}`);
}

export function remember(memory: MemoryManager, scope: MemoryScope, ...texts: string[]) {
  return memory.ingest({ scope, source: { id: 'import' }, memories: texts, wait: true });
}

/** Makes a memory that no guard has checked. */
export function draft(id: string, text: string): MemoryDraft {
  const at = '2026-01-01T00:00:00.000Z';
  return {
    id,
    kind: 'declarative',
    text,
    topics: [],
    importance: 0.5,
    confidence: 0.9,
    validFrom: at,
    sources: [{ id: 'test', type: 'bootstrap', trust: 0.95, statement: text, sha256: 'x', at }],
  };
}
