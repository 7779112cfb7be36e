import type { SessionSnapshotInput } from 'genkitx-agents';

/** A completed snapshot of the session `chat`, with other fields where they are given. */
export function makeTurn<S = unknown>(extra: Partial<SessionSnapshotInput<S>> = {}): SessionSnapshotInput<S> {
  return {
    sessionId: 'chat',
    createdAt: '2026-01-01T00:00:00.000Z',
    status: 'completed',
    state: { custom: {} as S },
    ...extra,
  };
}
