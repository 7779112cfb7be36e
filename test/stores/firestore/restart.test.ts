import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { expect, it } from 'vitest';
import { freePort, startEmulator } from '../../support/emulator.ts';
import { newProject, openDatabase } from './support/database.ts';

/** Has the emulator write down what it holds; answers the file to start it from. It keeps nothing by itself. */
async function exported(host: string, project: string, folder: string): Promise<string> {
  const response = await fetch(`http://${host}/emulator/v1/projects/${project}:export`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      database: `projects/${project}/databases/(default)`,
      export_directory: folder,
      export_name: 'export',
    }),
  });
  expect(response.status).toBe(200);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return join(
    folder,
    files.find((file) => file.endsWith('.overall_export_metadata'))!,
  );
}

it('outage: with the database restarted in the middle every acknowledged save is there, calls in between end typed, watchers come back', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-emulator-'));
  const port = await freePort();
  let emulator = await startEmulator({ port });
  const project = newProject();
  const db = openDatabase(project, { 'grpc.max_reconnect_backoff_ms': 1000 }, emulator.host);
  const store = new FirestoreSessionStore({ db, requestTimeoutMs: 3000 });
  const acknowledged: string[] = [];
  const statuses = new Set<unknown>();
  const createdAt = '2026-01-01T00:00:00.000Z';

  const saveTurns = async (count: number): Promise<void> => {
    for (const end = acknowledged.length + count; acknowledged.length < end;) {
      try {
        const leaf = await store.getSnapshot({ sessionId: 'chat' });
        const id = `turn ${acknowledged.length}`;
        const next = {
          sessionId: 'chat',
          createdAt,
          status: 'completed' as const,
          ...(leaf && { parentId: leaf.snapshotId }),
        };
        if (leaf?.snapshotId !== id)
          await store.saveSnapshot(id, () => next, { expectedLeafId: leaf?.snapshotId ?? null });
        acknowledged.push(id);
      } catch (error) {
        statuses.add((error as { status?: unknown }).status);
      }
    }
  };

  const told: unknown[] = [];
  await saveTurns(10);
  await store.saveSnapshot('running', () => ({ createdAt, status: 'pending' }));
  store.onSnapshotStateChange('running', (news) => told.push(news.status));
  while (told.length < 1) await new Promise((resolve) => setTimeout(resolve, 10));

  const file = await exported(emulator.host, project, folder);
  await emulator.stop();
  const during = saveTurns(10);
  while (statuses.size === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  emulator = await startEmulator({ port, args: [`--import-data=${file}`] });
  await during;
  await store.saveSnapshot('running', (current) => ({ ...current!, status: 'aborted' }));
  while (told.at(-1) !== 'aborted') await new Promise((resolve) => setTimeout(resolve, 10));

  // The import makes new documents of the old ones, so the first status may be told again.
  expect(told.filter((status, i) => status !== told[i - 1])).toEqual(['pending', 'aborted']);
  expect([...statuses]).toEqual(['UNAVAILABLE']);
  const { items } = await store.listSnapshots({ sessionId: 'chat' });
  expect(items.map((item) => item.snapshotId)).toEqual(acknowledged);
  expect(acknowledged).toHaveLength(20);
  await store.close();
  await db.terminate();
  await emulator.stop();
  rmSync(folder, { recursive: true, force: true });
});
