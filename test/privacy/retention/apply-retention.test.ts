import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CRC32C, Storage } from '@google-cloud/storage';
import { logger } from 'genkit/logging';
import { FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { applyRetention, archiveToBucket, type ArchivedSession } from 'genkitx-agents/privacy';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { appliesRetention, DAY, plant, sessionsIn } from './retention-suite.ts';

describe('retention in memory', () => {
  appliesRetention((options) => new InMemorySessionStore(options));
});

describe('retention on files', () => {
  appliesRetention((options) => new FileSessionStore(temporaryFolder(), { durability: 'fast', ...options }));
});

describe('retention', () => {
  it('refuses invalid policies and options, and stores that can’t list or delete', async () => {
    const store = new InMemorySessionStore();
    const refused = (call: Promise<unknown>, status = 'INVALID_ARGUMENT') =>
      expect(call).rejects.toMatchObject({ status });
    await refused(applyRetention(store, { idleMs: -1 }));
    await refused(applyRetention(store, { idle: 1 } as never));
    await refused(applyRetention(store, {}, { context: {} } as never));
    await refused(applyRetention(store, {}, { contexts: {} } as never));
    await refused(applyRetention({ getSnapshot: async () => undefined } as never, {}), 'FAILED_PRECONDITION');
  });

  it('logs in one line why a session stays', async () => {
    const warn = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const store = new InMemorySessionStore();
    await plant(store, 'one', [10]);
    const archive = () => Promise.reject(new Error('the disk is full'));
    expect(await applyRetention(store, { idleMs: DAY }, { archive })).toMatchObject({ failed: 1 });
    expect(warn.mock.calls).toEqual([['Retention did not change session "one". the disk is full']]);
  });

  it('archives to a bucket through the client of Cloud Storage, and leaves the session when that is refused', async () => {
    const objects = new Map<string, string>();
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const name = new URL(request.url!, 'http://bucket').searchParams.get('name') ?? '';
      const content = contentOf(await bodyOf(request));
      const isRefused = name.includes('refused');
      if (!isRefused) objects.set(name, content);
      // The client compares it with what it sent.
      const crc32c = new CRC32C();
      crc32c.update(Buffer.from(content));
      const stored = { kind: 'storage#object', name, bucket: 'archive', crc32c: crc32c.toString() };
      response.writeHead(isRefused ? 403 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(isRefused ? { error: { code: 403, message: 'no' } } : stored));
    };
    const server = createServer((request, response) => void answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const storage = new Storage({ apiEndpoint: `http://127.0.0.1:${port}`, projectId: 'demo', token: 'none' });
    const nameOf = ({ summary }: ArchivedSession): string => `a tenant/${summary.sessionId}`;
    const archive = archiveToBucket(storage.bucket('archive'), { nameOf });
    const store = new InMemorySessionStore();
    await plant(store, 'stored', [10]);
    await plant(store, 'refused', [10]);
    expect(await applyRetention(store, { idleMs: DAY }, { archive })).toMatchObject({ sessions: 1, failed: 1 });
    expect(await sessionsIn(store)).toEqual(['refused']);
    const [[name, body]] = [...objects] as [[string, string]];
    expect(name).toBe('a tenant/stored.jsonl');
    expect(body).toContain('stored said 0');
    expect(body).toContain('{"kind":"end","sessions":1,"snapshots":1,"records":0,"scopes":0}');
  });
});

/** The second part of an upload: its first one describes the object. */
function contentOf(body: string): string {
  const [, boundary] = /^--(\S+)\r\n/.exec(body)!;
  const part = body.split(`--${boundary}`)[2]!;
  return part.slice(part.indexOf('\r\n\r\n') + 4, -2);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
