import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatOwner, newOwner, type Owner } from '../../../stores/file/owner.ts';
import { contentsBelow, entriesBelow, temporaryFolder } from './support/folders.ts';
import { openStore, saveTurn, saveTurns, SESSION } from './support/scenarios.ts';

const LOCK = 'a'.repeat(64);
const NONCE = '0123456789ab';

/** No process has so high a number. */
const THE_DEAD: Owner = { ...newOwner(), pid: 4_194_305, nonce: NONCE };

function put(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

/** Reads, saves, rewrites, prunes, deletes and closes; then once more with a store of its own. */
async function liveOn(folder: string): Promise<void> {
  for (let life = 1; life <= 2; life++) {
    const store = openStore(folder);
    await store.getSnapshot({ sessionId: SESSION });
    await saveTurns(store, 4, true);
    await store.saveSnapshot('t1', (current) => ({ ...current!, state: { custom: { turn: 7 } } }));
    await store.prune({ maxChainLength: 1 });
    await store.deleteSession({ sessionId: SESSION });
    await store.close();
  }
}

describe('files in the folders of locks and of temporary files that the store did not make', () => {
  const FOREIGN = {
    '.tmp/project/thesis.md': 'x',
    '.tmp/notes.txt': 'x',
    '.tmp/0123456789ab': 'x',
    '.tmp/0123456789ab-': 'x',
    '.tmp/0123456789ab-1.txt': 'x',
    '.tmp/nobody-7': 'x',
    // As the store's own are named, but for what is in them.
    [`.tmp/${NONCE}-5/thesis.md`]: 'x',
    [`.tmp/${NONCE}-6/deep/thesis.jsonl`]: 'x',
    [`.tmp/${NONCE}-8/Thesis 1.jsonl`]: 'x',
    '.locks/my-notes.txt': 'y',
    '.locks/notes': formatOwner(THE_DEAD),
    '.locks/owner-me': 'y',
    '.locks/owner-me.txt': formatOwner(THE_DEAD),
    [`.locks/${LOCK}.txt`]: 'y',
    '.locks/probe-notes': 'y',
    '.locks/project/deep/thesis.md': 'y',
    [`.locks/${LOCK}/thesis.md`]: 'y',
  };

  it('stay through reading, saving, removing, closing and opening anew', async () => {
    const folder = temporaryFolder();
    const elsewhere = temporaryFolder();
    put(folder, FOREIGN);
    put(elsewhere, { 'thesis.jsonl': 'x', 'sub/thesis.md': 'x', note: formatOwner(THE_DEAD) });
    // Links under names of the store's own.
    symlinkSync(elsewhere, join(folder, `.tmp/${NONCE}-2`));
    symlinkSync(join(elsewhere, 'thesis.jsonl'), join(folder, `.tmp/${NONCE}-3`));
    symlinkSync(join(elsewhere, 'note'), join(folder, '.locks', 'b'.repeat(64)));
    const before = { ...contentsBelow(join(folder, '.tmp')), ...contentsBelow(join(folder, '.locks')) };
    const outside = contentsBelow(elsewhere);
    await liveOn(folder);
    expect({ ...contentsBelow(join(folder, '.tmp')), ...contentsBelow(join(folder, '.locks')) }).toEqual(before);
    expect(contentsBelow(elsewhere)).toEqual(outside);
  });

  it('do not keep what processes that died left there from being removed', async () => {
    const folder = temporaryFolder();
    put(folder, {
      ...FOREIGN,
      [`.tmp/${NONCE}-0`]: 'half a file',
      [`.tmp/${NONCE}-1/a-session.jsonl`]: 'the logs of a folder that was to be taken over',
      [`.tmp/${NONCE}-1/~.jsonl`]: '',
      [`.locks/owner-${NONCE}`]: formatOwner(THE_DEAD),
      [`.locks/${'c'.repeat(64)}`]: formatOwner(THE_DEAD),
      [`.locks/${'d'.repeat(64)}.${NONCE}`]: formatOwner(THE_DEAD),
      [`.locks/probe-${NONCE}-0`]: formatOwner(THE_DEAD),
      // A power failure took its text.
      [`.locks/${'e'.repeat(64)}`]: '',
      [`.locks/${'f'.repeat(64)}.unreadable-12`]: '',
    });
    await liveOn(folder);
    const left = Object.keys({ ...contentsBelow(folder, '.tmp'), ...contentsBelow(folder, '.locks') });
    expect(left.toSorted()).toEqual(Object.keys(FOREIGN).toSorted());
    expect(entriesBelow(folder)).not.toContain(`.tmp/${NONCE}-1`);
  });
});

describe('what reading changes', () => {
  it('is nothing, not even where processes died', async () => {
    const folder = temporaryFolder();
    const writer = openStore(folder);
    await saveTurns(writer, 4, true);
    await writer.close();
    put(folder, {
      [`.tmp/${NONCE}-0`]: 'half a file',
      [`.locks/owner-${NONCE}`]: formatOwner(THE_DEAD),
      [`.locks/${LOCK}`]: formatOwner(THE_DEAD),
    });
    const look = (): unknown => [
      contentsBelow(folder),
      ...['.tmp', '.locks', 'global'].map((name) => statSync(join(folder, name)).mtimeMs),
    ];
    const before = look();
    const reader = openStore(folder);
    await reader.getSnapshot({ sessionId: SESSION });
    await reader.getSnapshotMetadata({ snapshotId: 't1' });
    await reader.getSnapshot({ snapshotId: 'nothing' });
    await reader.listSessions();
    await reader.listSnapshots({ sessionId: SESSION });
    await reader.prune({ maxChainLength: 1 }, { dryRun: true });
    await reader.close();
    expect(look()).toEqual(before);
    const next = openStore(folder);
    await saveTurn(next, 5);
    await next.close();
    expect([...entriesBelow(join(folder, '.tmp')), ...entriesBelow(join(folder, '.locks'))]).toEqual([]);
    expect(readFileSync(join(folder, 'global/t5.json'), 'utf8')).toContain('t5');
  });
});
