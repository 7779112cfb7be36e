import { InMemorySessionStore, SessionService } from 'genkitx-agents';
import type { StateChange } from './greeting.ts';

/** The explicit way: one event changes several keys, also of different scopes. */
export async function logIn(now: number): Promise<StateChange> {
  const sessions = new SessionService(new InMemorySessionStore());
  const key = { appName: 'state_app_manual', userId: 'user2', sessionId: 'session2' };
  const session = await sessions.createSession({ ...key, state: { 'user:login_count': 0, task_status: 'idle' } });
  const before = session.state;

  await sessions.appendEvent(session, {
    invocationId: 'inv_login_update',
    author: 'system',
    timestamp: now,
    actions: {
      stateDelta: {
        task_status: 'active',
        'user:login_count': Number(before['user:login_count'] ?? 0) + 1,
        'user:last_login_ts': now,
        // Only for this turn: it is not stored.
        'temp:validation_needed': true,
      },
    },
  });

  const updated = await sessions.getSession(key);
  return { before, after: updated!.state };
}
