/** The commands that look at sessions, on a file store, by the command line as a user writes it. */
import { FileSessionStore, type MessageData, type SessionSnapshotInput } from 'genkitx-agents';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../stores/file/support/folders.ts';
import { jsonLinesOf, runCli, type Ran } from './support/run-cli.ts';

let folder: string;
const cli = (...argv: string[]): Promise<Ran> => runCli([...argv, '--store', 'file:data'], { folder });

const said = (role: MessageData['role'], text: string): MessageData => ({ role, content: [{ text }] });

type Turn = Partial<SessionSnapshotInput> & { snapshotId: string };

async function save(turns: readonly Turn[], tenant?: string): Promise<void> {
  const prefix = tenant === undefined ? {} : { snapshotPathPrefix: () => tenant };
  const store = new FileSessionStore(`${folder}/data`, { durability: 'fast', ...prefix });
  for (const [i, turn] of turns.entries()) {
    const createdAt = new Date(Date.UTC(2026, 0, 2, 3, 4, i)).toISOString();
    await store.saveSnapshot(turn.snapshotId, () => ({ createdAt, status: 'completed', ...turn }), {
      session: { agent: 'support', ownerId: 'ada' },
    });
  }
  await store.close();
}

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

  it('shows the sessions of one tenant', async () => {
    await save([{ snapshotId: 'a1', sessionId: 'a' }], 'team-1');
    expect((await cli('sessions', 'list')).out).toBe('No sessions.\n');
    expect((await cli('sessions', 'list', '--tenant', 'team-1')).out).toContain('\na ');
  });
});

describe('sessions show', () => {
  const messages: MessageData[] = [
    said('user', 'Where is A-17?'),
    { role: 'model', content: [{ toolRequest: { name: 'findOrder', ref: '1', input: { id: 'A-17' } } }] },
    { role: 'tool', content: [{ toolResponse: { name: 'findOrder', ref: '1', output: { status: 'shipped' } } }] },
    said('model', 'It is on its way.\u001B[2J'),
  ];

  it('prints the conversation with calls of tools in one line, the state, the artifacts and the error', async () => {
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

  it('prints an earlier snapshot by its id, and the whole of it as JSON', async () => {
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
  it('draws a line of turns straight down and branches to the right', async () => {
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

describe('what a command can not take', () => {
  it.each([
    ['no such command', ['sessions', 'lst'], /unknown command 'lst'/],
    ['no store', ['sessions', 'list'], /required option '-s, --store <url>'/],
    [
      'a URL that is none',
      ['sessions', 'list', '-s', 'redis:x'],
      /'redis:x' names no store. A store is 'file:DIRECTORY'/,
    ],
    ['a missing directory', ['sessions', 'list', '-s', 'file:nowhere'], /There is no directory .*nowhere/],
    ['a missing module', ['sessions', 'list', '-s', './nowhere.ts#store'], /There is no file .*nowhere.ts/],
    ['a limit that is no number', ['sessions', 'list', '-s', 'file:.', '-n', 'many'], /'many' is no whole number/],
    ['a context for a file store', ['sessions', 'list', '-s', 'file:.', '--context', '{}'], /use --tenant/],
  ])('%s: exit code 2, and a sentence that says what to do', async (_name, argv, message) => {
    const ran = await runCli(argv, { folder });
    expect(ran).toMatchObject({ code: 2, out: '' });
    expect(ran.err).toMatch(message);
  });

  it.each([
    ['session', ['sessions', 'show', 'gone'], /no session 'gone'/],
    ['snapshot', ['sessions', 'show', 'gone', '--snapshot'], /no snapshot 'gone'/],
    ['tree', ['sessions', 'tree', 'gone'], /no session 'gone'/],
  ])('a %s that is not there: exit code 1', async (_name, argv, message) => {
    await save([{ snapshotId: 'a1', sessionId: 'a' }]);
    const ran = await cli(...argv);
    expect(ran).toMatchObject({ code: 1, out: '' });
    expect(ran.err).toMatch(message);
  });
});
