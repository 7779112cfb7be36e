import type {
  MemoryDraft,
  MemoryOperation,
  MemoryScopeId,
  MemorySource,
} from '../../../../src/store/memory/contract.ts';

/** The scope of most tests. */
export const ADA: MemoryScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };
/** Another scope. */
export const BOB: MemoryScopeId = { scope: 'user', appName: 'shop', userId: 'bob' };
/** A scope to which no test writes. */
export const CAROL: MemoryScopeId = { scope: 'user', appName: 'shop', userId: 'carol' };

/** The time of the first commit, in milliseconds since 1970. */
export const START = Date.UTC(2026, 0, 1);

export function isoOf(time: number): string {
  return new Date(time).toISOString();
}

export function source(id: string, statement = `said in ${id}`): MemorySource {
  return { id, type: 'implicit', trust: 0.6, statement, sha256: 'ab'.repeat(32), at: isoOf(START) };
}

export function draft(id: string, members: Partial<MemoryDraft> = {}): MemoryDraft {
  return {
    id,
    kind: 'declarative',
    text: `The user said ${id}`,
    topics: ['said'],
    importance: 0.5,
    confidence: 0.5,
    validFrom: isoOf(START),
    sources: [source('chat-1')],
    ...members,
  };
}

export function put(id: string, members: Partial<MemoryDraft> = {}, vector?: readonly number[]): MemoryOperation {
  return { op: 'put', memory: draft(id, members), ...(vector && { vector }) };
}

export function note(
  kind: string,
  key: string,
  value: Extract<MemoryOperation, { op: 'note' }>['value'],
): MemoryOperation {
  return { op: 'note', kind, key, value };
}
