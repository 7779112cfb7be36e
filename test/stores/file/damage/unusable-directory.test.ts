/** A directory that can't be created: the error names it for the developer, but never for a client. */
import { writeFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { defineCustomAgent, genkit } from 'genkitx-agents';
import { FileMemoryStore } from 'genkitx-agents/memory';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import { ADA, put } from '../../../conformance/memory/support/drafts.ts';
import { catchErrorLog } from '../../../server/support/log.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const errorLog = catchErrorLog();

const save = (store: FileSessionStore): Promise<unknown> =>
  store.saveSnapshot('one', () => ({ sessionId: 's', createdAt: 'x', status: 'completed', state: {} }));

/** A file system in which a call fails below `folder`, for example because the process may not write there. */
function refusing(folder: string, call: 'mkdir' | 'stat', code: string): FileSystem {
  const fails = (path: string): never => {
    throw Object.assign(new Error(`${code}: ${call} '${path}'`), { code, syscall: call, path });
  };
  const isBelow = (path: string): boolean => path.startsWith(`${folder}/`);
  return {
    ...nodeFileSystem,
    stat: (path) => (call === 'stat' && isBelow(path) ? fails(path) : nodeFileSystem.stat(path)),
    statTarget: (path) => (call === 'stat' && isBelow(path) ? fails(path) : nodeFileSystem.statTarget(path)),
    mkdir: (path) => (isBelow(path) ? fails(path) : nodeFileSystem.mkdir(path)),
  };
}

/** Directories that can't be created in `folder`, by the system's code. */
const CASES: Readonly<Record<string, (folder: string, directory: string) => FileSessionStore>> = {
  'ENOENT, a symbolic link to nothing': (folder, directory) => {
    symlinkSync(join(folder, 'nothing'), directory);
    return new FileSessionStore(directory);
  },
  'ENOTDIR, a file that was created in its path later': (folder, directory) => {
    const store = new FileSessionStore(join(directory, 'below'));
    writeFileSync(directory, '');
    return store;
  },
  'EACCES, a folder above it where the process may not write': (folder, directory) =>
    new FileSessionStore(directory, {}, refusing(folder, 'mkdir', 'EACCES')),
  'EACCES, a folder above it where the process may not look': (folder, directory) =>
    new FileSessionStore(directory, {}, refusing(folder, 'stat', 'EACCES')),
  'EROFS, a read-only file system': (folder, directory) =>
    new FileSessionStore(directory, {}, refusing(folder, 'mkdir', 'EROFS')),
};

describe('a directory that can’t be made', () => {
  for (const [name, make] of Object.entries(CASES)) {
    it(`fails the save by an error with the directory as it was given, the reason, and what to do: ${name}`, async () => {
      const folder = temporaryFolder();
      const error: unknown = await save(make(folder, join(folder, 'sessions'))).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ status: 'FAILED_PRECONDITION' });
      const { message } = error as Error;
      expect(message).toContain(`FileSessionStore can't make or open its directory "${folder}/sessions`);
      expect(message).toContain(`(${name.split(',')[0]})`);
      expect(message).toContain(
        'Make the directory, with write access for this process, or give the store another one.',
      );
      expect(message).not.toContain('try again');
    });
  }

  it('is named with the class of its store', async () => {
    const folder = temporaryFolder();
    symlinkSync(join(folder, 'nothing'), join(folder, 'memories'));
    const commit = new FileMemoryStore(join(folder, 'memories')).commit(ADA, [put('one')]);
    await expect(commit).rejects.toThrow("FileMemoryStore can't make or open its directory");
  });

  it('is created by the next save after the cause is fixed', async () => {
    const folder = temporaryFolder();
    let fs = refusing(folder, 'mkdir', 'EACCES');
    const mkdir = (path: string): void => fs.mkdir(path);
    const store = new FileSessionStore(join(folder, 'sessions'), {}, { ...nodeFileSystem, mkdir });
    await expect(save(store)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    fs = nodeFileSystem;
    expect(await save(store)).toBe('one');
  });

  it('is named in process and in the log; an HTTP client gets an errorId, but not the path', async () => {
    const folder = temporaryFolder();
    const directory = join(folder, 'sessions');
    const store = CASES['ENOENT, a symbolic link to nothing']!(folder, directory);
    const agent = defineCustomAgent(genkit({}), { name: 'echo', store }, async (session) => {
      await session.run(async () => session.addMessages([{ role: 'model', content: [{ text: 'hi' }] }]));
      return {};
    });
    await expect(agent.chat().send('hello')).rejects.toMatchObject({ message: expect.stringContaining(directory) });

    const serve = agentHandler([agent], { anonymous: true });
    for (const accept of ['application/json', 'text/event-stream']) {
      const answer = await serve(
        new Request('http://localhost/echo', {
          method: 'POST',
          headers: { 'content-type': 'application/json', accept },
          body: JSON.stringify({ data: { message: { role: 'user', content: [{ text: 'hello' }] } } }),
        }),
      );
      const text = await answer.text();
      expect(text).toContain('errorId');
      expect(text).not.toMatch(/ENOENT|directory|sessions|genkitx-agents-file/);
      expect(errorLog()).toContain(/"errorId":"([\da-f-]+)"/.exec(text)?.[1]);
    }
    expect(errorLog()).toContain(directory);
  });
});
