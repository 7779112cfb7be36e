/** The commands for sessions, on a file store, with command lines as a user writes them. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import type { MessageData } from 'genkitx-agents';
import { FileMemoryStore } from 'genkitx-agents/memory';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { jsonLinesOf, runCli, type Ran, type RunOptions } from './support/run-cli.ts';
import { said, save as saveIn, type Turn } from './support/stored.ts';

let folder: string;
const cli = (...argv: string[]): Promise<Ran> => runCli([...argv, '--store', 'file:data'], { folder });

const save = (turns: readonly Turn[], tenant?: string): Promise<void> => saveIn(`${folder}/data`, turns, tenant);

beforeEach(() => {
  folder = temporaryFolder();
});

describe('sessions list', () => {
  it('shows the session written last first, filtered, limited, and as JSON for programs', async () => {
    await save([
      { snapshotId: 'a1', sessionId: 'a', usage: { totalTokens: 1200 } } as Turn,
      { snapshotId: 'b1', sessionId: 'b', status: 'failed' },
      { snapshotId: 'b2', sessionId: 'b', parentId: 'b1', status: 'pending' },
    ]);
    const all = await cli('sessions', 'list');
    expect(all).toMatchObject({ code: 0, err: '' });
    expect(all.out).toBe(
      'SESSION  STATUS     SNAPSHOTS  LEAVES  TOKENS  AGENT    OWNER  WRITTEN (UTC)\n' +
        'b        pending            2       1          support  ada    2026-01-02 03:04:02\n' +
        'a        completed          1       1   1,200  support  ada    2026-01-02 03:04:00\n',
    );
    expect((await cli('sessions', 'list', '--status', 'completed')).out).not.toContain('\nb ');
    expect((await cli('sessions', 'list', '--owner', 'bob')).out).toBe('No sessions.\n');
    const one = await cli('sessions', 'list', '--limit', '1', '--json');
    expect(jsonLinesOf(one.out)).toEqual([expect.objectContaining({ sessionId: 'b', leafId: 'b2', snapshotCount: 2 })]);
    expect(one.err).toContain('There are more');
  });

  it('refuses an unknown status, and a context that is not an object', async () => {
    await save([{ snapshotId: 'a1', sessionId: 'a' }]);
    expect(await cli('sessions', 'list', '--status', 'complete')).toMatchObject({ code: 2, out: '' });
    for (const context of ['null', '0', '"ada"', '[]', '{']) {
      const refused = await cli('sessions', 'list', '--context', context);
      expect(refused, context).toMatchObject({ code: 2, out: '' });
      expect(refused.err, context).toContain("--context takes a JSON object, for example '{");
    }
  });

  it('shows the sessions of one tenant', async () => {
    await save([{ snapshotId: 'a1', sessionId: 'a' }], 'team-1');
    expect((await cli('sessions', 'list')).out).toBe('No sessions.\n');
    expect((await cli('sessions', 'list', '--tenant', 'team-1')).out).toContain('\na ');
  });
});

describe('a problem', () => {
  it('is printed without characters that move the cursor', async () => {
    const [sessionId, snapshotId] = ['s\u001B[2J', 'a\u001B[2J'];
    await save([{ snapshotId, sessionId }]);
    const aborted = await cli('runs', 'abort', snapshotId);
    expect(aborted.code).toBe(1);
    await runCli(['sessions', 'copy', '--from', 'file:data', '--to', 'file:copy'], { folder });
    await save([{ snapshotId: 'b', sessionId, parentId: snapshotId }]);
    await saveIn(`${folder}/copy`, [{ snapshotId: 'c', sessionId, parentId: snapshotId }]);
    const copied = await runCli(['sessions', 'copy', '--from', 'file:data', '--to', 'file:copy'], { folder });
    expect(copied.code).toBe(1);
    for (const { err } of [aborted, copied]) {
      expect(err).toContain('\\x1b[2J');
      expect(err).not.toContain('\u001B');
    }
  });
});

describe('sessions show', () => {
  const messages: MessageData[] = [
    said('user', 'Where is A-17?'),
    { role: 'model', content: [{ toolRequest: { name: 'findOrder', ref: '1', input: { id: 'A-17' } } }] },
    { role: 'tool', content: [{ toolResponse: { name: 'findOrder', ref: '1', output: { status: 'shipped' } } }] },
    said('model', 'It is on its way.\u001B[2J'),
  ];

  it('prints the conversation with each tool call in one line, the state, the artifacts and the error', async () => {
    const state = { messages, custom: { orderId: 'A-17' }, artifacts: [{ name: 'label.pdf', parts: [{ text: 'x' }] }] };
    await save([
      {
        snapshotId: 'a1',
        sessionId: 'a',
        status: 'failed',
        state,
        error: { status: 'UNAVAILABLE', message: 'no model' },
      },
    ]);
    const { out, code } = await cli('sessions', 'show', 'a');
    expect(code).toBe(0);
    expect(out).toBe(
      'session a · snapshot a1 · failed · 2026-01-02 03:04:00\n\n' +
        'user:\n  Where is A-17?\n\n' +
        'model:\n  → findOrder {"id":"A-17"}\n\n' +
        'tool:\n  ← findOrder {"status":"shipped"}\n\n' +
        // An escape sequence of a message must not reach the terminal.
        'model:\n  It is on its way.\\x1b[2J\n\n' +
        'state\n  orderId: "A-17"\n\nartifacts\n  label.pdf\n\nerror UNAVAILABLE: no model\n',
    );
    expect((await cli('sessions', 'show', 'a', '--full')).out).toContain('    "id": "A-17"');
  });

  it('prints an earlier snapshot by its id, and as JSON in full', async () => {
    await save([
      { snapshotId: 'a1', sessionId: 'a', state: { messages: messages.slice(0, 1) } },
      { snapshotId: 'a2', sessionId: 'a', parentId: 'a1', state: { messages } },
    ]);
    const { out } = await cli('sessions', 'show', 'a1', '--snapshot', '--json');
    expect(jsonLinesOf(out)).toEqual([
      expect.objectContaining({ snapshotId: 'a1', state: expect.objectContaining({ messages: messages.slice(0, 1) }) }),
    ]);
  });
});

describe('sessions tree', () => {
  it('draws successive turns straight down and branches to the right', async () => {
    const turns = [
      { snapshotId: 's1', parentId: undefined },
      { snapshotId: 's2', parentId: 's1' },
      { snapshotId: 's3', parentId: 's2' },
      { snapshotId: 's4', parentId: 's2', status: 'failed' as const },
      { snapshotId: 's5', parentId: 's3' },
      { snapshotId: 's6', parentId: 's4', status: 'pending' as const },
    ];
    await save(
      turns.map((turn) => ({ sessionId: 's', state: { messages: [said('user', `ask ${turn.snapshotId}`)] }, ...turn })),
    );
    const at = (second: number): string => `2026-01-02 03:04:0${second}`;
    expect((await cli('sessions', 'tree', 's', '--messages')).out).toBe(
      `● s1  completed  ${at(0)}  ask s1\n` +
        `● s2  completed  ${at(1)}  ask s2\n` +
        `├─● s3  completed  ${at(2)}  ask s3\n` +
        `│ ● s5  completed  ${at(4)}  ask s5\n` +
        `└─✗ s4  failed  ${at(3)}  ask s4\n` +
        `  ○ s6  pending  ${at(5)}  ask s6\n`,
    );
    expect(jsonLinesOf((await cli('sessions', 'tree', 's', '--json')).out).map(({ snapshotId }) => snapshotId)).toEqual(
      turns.map(({ snapshotId }) => snapshotId),
    );
  });
});

describe('sessions diff', () => {
  it('shows messages by message and the state by path', async () => {
    const first = [said('user', 'Hello'), said('model', 'Hi')];
    await save([
      { snapshotId: 'a1', sessionId: 'a', state: { messages: first, custom: { orderId: 'A-17', tags: ['x'] } } },
      {
        snapshotId: 'a2',
        sessionId: 'a',
        parentId: 'a1',
        state: { messages: [...first, said('user', 'And B-2?')], custom: { orderId: 'B-2', total: 3 } },
      },
    ]);
    const { out, code } = await cli('sessions', 'diff', 'a1', 'a2');
    expect(code).toBe(0);
    expect(out).toContain('messages: 2 the same, 0 removed, 1 added\n+ user:\n+   And B-2?\n');
    expect(out).toContain('/orderId: "A-17" → "B-2"');
    expect(out).toContain('/tags: ["x"] → removed');
    expect(out).toContain('/total: 3');
    expect(jsonLinesOf((await cli('sessions', 'diff', 'a2', 'a1', '--json')).out)).toEqual([
      expect.objectContaining({ messages: { same: 2, removed: [said('user', 'And B-2?')], added: [] } }),
    ]);
  });
});

const OLD = '2020-01-01T00:00:00.000Z';

describe('sessions delete, prune and retain', () => {
  const asked = (answer: boolean | undefined, ...argv: string[]): Promise<Ran> => {
    const options: RunOptions = { folder, ...(answer !== undefined && { answer }) };
    return runCli([...argv, '-s', 'file:data'], options);
  };
  const left = async (): Promise<unknown[]> =>
    jsonLinesOf((await cli('sessions', 'list', '--json')).out).map(({ sessionId }) => sessionId);

  beforeEach(() =>
    save([
      { snapshotId: 'a1', sessionId: 'a', createdAt: OLD },
      { snapshotId: 'a2', sessionId: 'a', parentId: 'a1', createdAt: OLD },
      { snapshotId: 'b1', sessionId: 'b', createdAt: new Date().toISOString() },
    ]),
  );

  it.each([
    ['delete', ['sessions', 'delete', 'a']],
    ['prune', ['sessions', 'prune', '--idle', '30d']],
    ['retain', ['sessions', 'retain', '--idle', '30d']],
  ])('%s asks first, prints the counts before and after, and removes nothing with --dry-run', async (_name, argv) => {
    expect(await asked(undefined, ...argv, '--dry-run')).toMatchObject({
      code: 0,
      out: 'Would remove: 1 session, 2 snapshots\n',
    });
    const nowhere = await asked(undefined, ...argv);
    expect(nowhere).toMatchObject({ code: 2, out: '' });
    expect(nowhere.err).toContain('1 session, 2 snapshots will be removed permanently. Add --yes');
    expect((await asked(false, ...argv)).err).toContain('Nothing was removed.');
    expect(await left()).toEqual(['b', 'a']);
    expect(await asked(true, ...argv)).toMatchObject({
      code: 0,
      out: 'Before:  2 sessions, 3 snapshots\nRemoved: 1 session, 2 snapshots\nAfter:   1 session, 1 snapshot\n',
    });
    expect(await left()).toEqual(['b']);
  });

  it('retain archives the sessions that it removes, and import reads the archive', async () => {
    expect(await asked(true, 'sessions', 'retain', '--idle', '30d', '--archive', 'archive')).toMatchObject({
      code: 0,
    });
    const [file] = readdirSync(`${folder}/archive`);
    expect(await cli('sessions', 'import', `archive/${file}`)).toMatchObject({ code: 0 });
    expect(new Set(await left())).toEqual(new Set(['a', 'b']));
  });

  it('delete removes nothing when one of the sessions does not exist, and prune nothing without a policy', async () => {
    expect(await asked(true, 'sessions', 'delete', 'a', 'gone')).toMatchObject({ code: 1 });
    expect(await asked(true, 'sessions', 'prune')).toMatchObject({ code: 2 });
    expect((await asked(true, 'sessions', 'prune', '--idle', '3')).err).toContain("'3' is not a duration. Write 30d");
    expect(await left()).toEqual(['b', 'a']);
  });
});

describe('sessions export, import and copy', () => {
  beforeEach(() =>
    save([
      { snapshotId: 'a1', sessionId: 'a' },
      { snapshotId: 'a2', sessionId: 'a', parentId: 'a1' },
      { snapshotId: 'a3', sessionId: 'a', parentId: 'a1', status: 'failed' },
      { snapshotId: 'b1', sessionId: 'b' },
    ]),
  );
  const sessionsIn = async (store: string): Promise<string> =>
    (await runCli(['sessions', 'list', '-s', store], { folder })).out;

  it('export and import move all, by a file or a pipe', async () => {
    const exported = await cli('sessions', 'export');
    expect(exported).toMatchObject({ code: 0 });
    expect(await cli('sessions', 'export', '--out', 'all.jsonl')).toMatchObject({ code: 0, out: '' });
    expect(readFileSync(`${folder}/all.jsonl`, 'utf8')).toBe(exported.out);
    for (const [store, input] of [
      ['file:by-file', []],
      ['file:by-pipe', [exported.out]],
    ] as const) {
      const argv = ['sessions', 'import', ...(input.length > 0 ? [] : ['all.jsonl']), '-s', store];
      const ran = await runCli(argv, { folder, input });
      expect(ran.out).toBe(
        'Complete: 2 sessions\nWritten:  4 snapshots, 0 session records, 0 records of users and apps\n',
      );
      expect(await sessionsIn(store)).toBe(await sessionsIn('file:data'));
    }
  });

  it('import reports a file that was cut off, and export never overwrites one', async () => {
    await cli('sessions', 'export', '-o', 'all.jsonl');
    expect((await cli('sessions', 'export', '-o', 'all.jsonl')).err).toContain('already exists. Name a new file.');
    truncateSync(`${folder}/all.jsonl`, readFileSync(`${folder}/all.jsonl`).lastIndexOf('{"kind":"end"'));
    const cut = await runCli(['sessions', 'import', 'all.jsonl', '-s', 'file:copy'], { folder });
    expect(cut.code).toBe(1);
    expect(cut.err).toContain('The export was cut off after line 6');
    expect((await runCli(['sessions', 'import', 'none.jsonl', '-s', 'file:copy'], { folder })).code).toBe(2);
  });

  it('export that fails leaves no file, so that it can be tried again', async () => {
    const gone = await cli('sessions', 'export', '--session', 'a', 'gone', '-o', 'some.jsonl');
    expect(gone).toMatchObject({ code: 1, err: expect.stringContaining('There is no session "gone"') });
    expect(existsSync(`${folder}/some.jsonl`)).toBe(false);
  });

  it('a damaged snapshot is named, and export, copy and the list of runs have everything else', async () => {
    writeFileSync(`${folder}/data/global/a3.json`, 'damaged');
    const exported = await cli('sessions', 'export', '-o', 'all.jsonl');
    expect(exported).toMatchObject({ code: 1, err: expect.stringContaining("can't be read: 1 part of the data") });
    const moved = await runCli(['sessions', 'import', 'all.jsonl', '-s', 'file:moved'], { folder });
    expect(moved).toMatchObject({ code: 0, out: expect.stringContaining('Written:  3 snapshots') });
    const copied = await runCli(['sessions', 'copy', '--from', 'file:data', '--to', 'file:copy'], { folder });
    expect(copied).toMatchObject({ code: 1, err: expect.stringContaining('session "a"') });
    expect(await sessionsIn('file:copy')).toMatch(/^b  +completed/m);
    writeFileSync(`${folder}/data/global/b1.json`, 'damaged');
    const runs = await cli('runs', 'list');
    expect(runs).toMatchObject({ code: 1, out: 'No runs.\n', err: expect.stringContaining('not listed: b.') });
  });

  it('copy moves all between two stores, and to another tenant; a session that continued in both is a problem', async () => {
    const copy = ['sessions', 'copy', '--from', 'file:data', '--to', 'file:copy'];
    expect(await runCli([...copy, '--to-tenant', 'team'], { folder })).toMatchObject({ code: 0 });
    expect(await sessionsIn('file:copy')).toBe('No sessions.\n');
    expect(await runCli(copy, { folder })).toMatchObject({ code: 0 });
    expect(await sessionsIn('file:copy')).toBe(await sessionsIn('file:data'));
    await runCli(['sessions', 'delete', 'a', '-y', '-s', 'file:copy'], { folder });
    await saveIn(`${folder}/copy`, [{ snapshotId: 'a9', sessionId: 'a' }]);
    const diverged = await runCli(copy, { folder });
    expect(diverged.code).toBe(1);
    expect(diverged.err).toContain('1 session continued in both stores, and nothing more of them was written: a.');
    for (const snapshotId of ['z1', 'z2']) await save([{ snapshotId, sessionId: 'z', parentId: 'z0' }]);
    await saveIn(`${folder}/copy`, [{ snapshotId: 'z3', sessionId: 'z', parentId: 'z2' }]);
    const partial = await runCli(copy, { folder });
    expect(partial.code).toBe(1);
    expect(partial.err).toMatch(
      /: a\..*\n.*1 session continued in the second store, and other branches stay in the first: z\./,
    );
  });
});

describe('arguments that a command refuses', () => {
  it.each([
    ['no such command', ['sessions', 'lst'], /unknown command 'lst'/],
    ['no store', ['sessions', 'list'], /required option '-s, --store <url>'/],
    [
      'a URL that does not name a store',
      ['sessions', 'list', '-s', 'redis:x'],
      /'redis:x' does not name a store. Pass 'file:DIRECTORY'/,
    ],
    ['a missing directory', ['sessions', 'list', '-s', 'file:nowhere'], /The directory .*nowhere does not exist/],
    ['a missing module', ['sessions', 'list', '-s', './nowhere.ts#store'], /The file .*nowhere.ts does not exist/],
    [
      'a limit that is not a number',
      ['sessions', 'list', '-s', 'file:.', '-n', 'many'],
      /'many' is not a whole number/,
    ],
    ['a context for a file store', ['sessions', 'list', '-s', 'file:.', '--context', '{}'], /Pass --tenant/],
  ])('%s: exit code 2, and a message that says what to do', async (_name, argv, message) => {
    const ran = await runCli(argv, { folder });
    expect(ran).toMatchObject({ code: 2, out: '' });
    expect(ran.err).toMatch(message);
  });

  it('a tenant without data: a warning names the tenants of the store', async () => {
    await save([{ snapshotId: 'a1', sessionId: 'a' }], 'Ada');
    await save([{ snapshotId: randomUUID() }], 'bob@x');
    for (const argv of [['sessions', 'list'], ['sessions', 'export'], ['doctor'], ['doctor', '--tenant', 'bab']]) {
      const { err } = await cli(...argv);
      expect(err).toMatch(/has no data of the tenant '(global|bab)'\. Choose one with --tenant: Ada, bob@x\./);
    }
    expect((await cli('doctor', '--tenant', 'Ada')).err).not.toContain('Warning');
  });

  it('a module that throws: a message that names it', async () => {
    writeFileSync(`${folder}/broken.mjs`, 'throw new Error("There is no DATABASE_URL.");');
    expect(await runCli(['sessions', 'list', '-s', './broken.mjs#store'], { folder })).toMatchObject({
      code: 1,
      err: `${folder}/broken.mjs can't be loaded: There is no DATABASE_URL.\n`,
    });
  });

  it('a directory with other data: a warning', async () => {
    mkdirSync(`${folder}/data/notes`, { recursive: true });
    for (const argv of [['doctor'], ['memories', 'list']]) {
      expect(await cli(...argv)).toMatchObject({
        err: expect.stringContaining("has no data of the tenant 'global'. Choose one with --tenant: notes.") as string,
      });
    }
  });

  it('a directory with stores, or a store of the other kind: a message that names the right one', async () => {
    await save([{ snapshotId: 'a1', sessionId: 'a' }]);
    const memories = new FileMemoryStore(`${folder}/memories`);
    const source = {
      id: 'crm',
      type: 'bootstrap',
      trust: 0.95,
      sha256: 'x',
      statement: 'Tea.',
      at: '2026-01-01T00:00:00.000Z',
    } as const;
    const fact = { kind: 'declarative', text: 'Ada likes tea.', topics: [], importance: 0.5, confidence: 0.5 } as const;
    const memory = { id: 'tea', ...fact, validFrom: source.at, sources: [source] };
    await memories.commit({ scope: 'user', appName: 'shop', userId: 'ada' }, [{ op: 'put', memory }]);
    await memories.close();
    const run = (...argv: string[]) => runCli(argv, { folder });
    expect(await run('doctor', '-s', 'file:.')).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        'is not a store, but has stores in it. Pass one of them: file:./data, file:./memories.',
      ),
    });
    expect(await run('doctor', '-s', 'file:memories')).toMatchObject({
      code: 2,
      err: expect.stringContaining("has memories, not sessions. Pass it to 'memories' commands"),
    });
    expect(await run('memories', 'list', '-s', 'file:data')).toMatchObject({
      out: 'No memories.\n',
      err: expect.stringContaining('has sessions, but no memories.'),
    });
  });

  it('an empty directory is a new store', async () => {
    mkdirSync(`${folder}/data`);
    expect(await cli('sessions', 'list')).toMatchObject({ code: 0, out: 'No sessions.\n' });
    expect((await cli('doctor')).err).toContain('No problems found.');
  });

  it.each([
    ['session', ['sessions', 'show', 'gone'], /no session 'gone'/],
    ['snapshot', ['sessions', 'show', 'gone', '--snapshot'], /no snapshot 'gone'/],
    ['tree', ['sessions', 'tree', 'gone'], /no session 'gone'/],
  ])('a %s that does not exist: exit code 1', async (_name, argv, message) => {
    await save([{ snapshotId: 'a1', sessionId: 'a' }]);
    const ran = await cli(...argv);
    expect(ran).toMatchObject({ code: 1, out: '' });
    expect(ran.err).toMatch(message);
  });
});
