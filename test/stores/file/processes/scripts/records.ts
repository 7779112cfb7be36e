import type { ScopeChange, ScopeId } from '../../../../../src/store/contract.ts';
import type { FileSessionStore } from '../../../../../stores/file/file-session-store.ts';
import { idsOf, turn } from '../support/snapshots.ts';

const ADA: ScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };
const APP: ScopeId = { scope: 'app', appName: 'shop' };

/** The content of the records of a folder. */
export interface Counts {
  readonly ofUser: number;
  readonly ofApp: number;
  /** For each session, the last turn that set its key in the user's record. */
  readonly lastTurns: Readonly<Record<string, unknown>>;
}

/** Saves a turn that counts once, however many processes try it and however often. */
export async function countTurn(store: FileSessionStore, sessionId: string, id: string): Promise<void> {
  const parent = await store.getSnapshot({ sessionId });
  const scopes: ScopeChange[] = [
    { id: APP, change: (record) => ({ ...record, n: Number(record['n'] ?? 0) + 1 }) },
    { id: ADA, change: (record) => ({ ...record, n: Number(record['n'] ?? 0) + 1, [sessionId]: id }) },
  ];
  await store.saveSnapshot(id, (current) => (current ? null : turn(sessionId, parent, id)), { scopes });
}

export async function countsOf(store: FileSessionStore): Promise<Counts> {
  const [app, user] = await store.readScopes({ scopes: [APP, ADA] });
  const { n, ...lastTurns } = user!;
  return { ofUser: Number(n ?? 0), ofApp: Number(app!['n'] ?? 0), lastTurns };
}

/** The expected records: one for each existing turn. */
export async function countsExpected(store: FileSessionStore): Promise<Counts> {
  const lastTurns: Record<string, unknown> = {};
  let turns = 0;
  for (const { sessionId, leafId } of (await store.listSessions()).items) {
    turns += (await idsOf(store, sessionId)).length;
    lastTurns[sessionId] = leafId;
  }
  return { ofUser: turns, ofApp: turns, lastTurns };
}
