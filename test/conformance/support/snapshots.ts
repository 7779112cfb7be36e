import type { SessionSnapshotInput, SnapshotStatus } from '../../../src/store/contract.ts';

/** The members of a snapshot that a test sets. The others get defaults. */
export interface SnapshotPlan {
  sessionId?: string;
  parentId?: string;
  createdAt?: string;
  updatedAt?: string;
  status?: SnapshotStatus;
  custom?: unknown;
  /** The number of messages. */
  messages?: number;
}

export const TERMINAL = ['completed', 'failed', 'aborted'] as const;
export const STATUSES = ['pending', ...TERMINAL, 'expired'] as const;

/** Returns a snapshot as a turn saves it. */
export function snapshot(plan: SnapshotPlan = {}): SessionSnapshotInput {
  const { custom, messages, createdAt = '2026-01-02T03:04:05.678Z', ...fields } = plan;
  return {
    createdAt,
    updatedAt: createdAt,
    status: 'completed',
    ...fields,
    state: {
      ...(fields.sessionId !== undefined && { sessionId: fields.sessionId }),
      ...(messages !== undefined && { messages: Array.from({ length: messages }, (_, i) => message(i)) }),
      custom: custom ?? {},
    },
  };
}

export function message(index: number): { role: 'user' | 'model'; content: { text: string }[] } {
  return {
    role: index % 2 === 0 ? 'user' : 'model',
    content: [{ text: `message ${index}: ${'word '.repeat(index % 7)}` }],
  };
}

const EPOCH = Date.parse('2026-01-01T00:00:00.000Z');

/** Returns the time some seconds after the start of 2026. */
export function second(offset: number): string {
  return new Date(EPOCH + offset * 1000).toISOString();
}
