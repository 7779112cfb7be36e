/** The bodies of requests, and the values in them. */
import { request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ourServers } from '../support/http.ts';
import { hello, post, StubServer } from '../support/stub-server.ts';

describe.each(ourServers)('HTTP: $name', ({ serve }) => {
  const server = new StubServer(serve);

  describe('bodies', () => {
    const nested = (depth: number) => `{"data":${'['.repeat(depth)}${']'.repeat(depth)}}`;

    it.each([
      ['no type', hello, { 'content-type': '' }, 415],
      ['a form', 'data=1', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
      ['text', '{"data":{}}', { 'content-type': 'text/plain' }, 415],
      ['another charset', '{"data":{}}', { 'content-type': 'application/json; charset=latin1' }, 415],
      ['compression', gzipSync('{"data":{}}'), { 'content-encoding': 'gzip' }, 415],
      ['nothing', '', {}, 400],
      ['half a document', '{"data":', {}, 400],
      ['two documents', '{}{}', {}, 400],
      ['bytes that are not UTF-8', new Uint8Array([0x22, 0xff, 0x22]), {}, 400],
      ['a list', '[]', {}, 400],
      ['a word', '"data"', {}, 400],
      ['null', 'null', {}, 400],
      ['a bomb of brackets', nested(100_000), {}, 400],
      ['unclosed brackets', '['.repeat(100_000), {}, 400],
    ])('of %s are refused', async (_, body, headers, status) => {
      const answer = await post(await server.start(), body, headers);
      expect(answer.status).toBe(status);
      expect(answer.json.error.status).toBe('INVALID_ARGUMENT');
      expect(server.agent.runs).toEqual([]);
    });

    it.each([
      'application/json',
      'application/json; charset=UTF-8',
      'application/json;charset="utf-8"',
      'application/ld+json',
    ])('of type %s are read', async (type) => {
      expect((await post(await server.start(), { data: hello }, { 'content-type': type })).status).toBe(200);
    });

    it('may nest as deep as allowed, brackets in strings not counted', async () => {
      const url = await server.start({ anonymous: true, maxDepth: 6 });
      const withText = (text: string) => ({ data: { message: { role: 'user', content: [{ text }] } } });
      expect((await post(url, withText(`${'['.repeat(99)}"\\"{{{`))).status).toBe(200);
      expect((await post(url, { data: { ...hello, x: [[[[]]]] } })).status).toBe(200);
      const deeper = await post(url, { data: { ...hello, x: [[[[[]]]]] } });
      expect(deeper.status).toBe(400);
      expect(deeper.json.error.message).toContain('6 deep');
    });

    it('may hold as many names and values as allowed, without those in strings', async () => {
      const url = await server.start({ anonymous: true, maxValues: 20 });
      const withItems = (count: number) => ({ data: { message: hello.message, x: Array(count).fill(',:{[') } });
      expect((await post(url, withItems(2))).status).toBe(200);
      const fuller = await post(url, withItems(20));
      expect(fuller.status).toBe(413);
      expect(fuller.json.error.status).toBe('INVALID_ARGUMENT');
      expect(fuller.json.error.message).toContain('20 names and values');
      expect(server.agent.runs).toHaveLength(1);
    });

    const list = (item: string) => Array(100_000).fill(item).join(',');
    it.each([
      ['parts', `{"data":{"message":{"role":"user","content":[${list('{}')}]}}}`],
      ['names', `{"data":{"message":{"role":"user","content":[{"data":{${list('"":1')}}}]}}}`],
      ['messages', `{"data":{},"init":{"state":{"messages":[${list('{}')}]}}}`],
      ['lists', `{"data":{},"init":{"state":{"custom":[${list('[]')}]}}}`],
    ])('that are full of %s are refused before they are worked on', async (_, body) => {
      const answer = await post(await server.start(), body);
      expect(answer.status).toBe(413);
      expect(server.agent.runs).toEqual([]);
    });

    it('that are too long are refused, announced or not, and the answer arrives', async () => {
      const url = await server.start({ anonymous: true, maxBodyBytes: 1000 });
      const long = JSON.stringify({ data: { ...hello, x: 'y'.repeat(3_000_000) } });
      for (let round = 0; round < 5; round++) {
        expect((await post(url, long)).status).toBe(413);
        const pieces = long.match(/.{1,65536}/g)!.map((piece) => new TextEncoder().encode(piece));
        const unannounced = new ReadableStream<Uint8Array>({
          pull: (controller) => {
            const next = pieces.shift();
            return next ? controller.enqueue(next) : controller.close();
          },
        });
        expect((await post(url, unannounced)).status).toBe(413);
      }
      expect((await post(url, { data: hello })).status).toBe(200);
      expect(server.agent.runs).toHaveLength(1);
    });

    it('that arrive too slowly are refused with 408', async () => {
      const url = await server.start({ anonymous: true, bodyTimeoutMs: 30 });
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const request = httpRequest(url, { method: 'POST', headers: { 'content-type': 'application/json' } });
        request.on('response', (response) => {
          resolve(response.statusCode);
          request.destroy();
        });
        request.on('error', reject);
        request.write('{"data":');
      });
      expect(status).toBe(408);
    });

    it('that are cut off affect no other request', async () => {
      const url = await server.start();
      await new Promise<void>((resolve) => {
        const request = httpRequest(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'content-length': 100 },
        });
        request.on('error', () => resolve());
        request.write('{"data":', () => request.destroy());
      });
      expect((await post(url, { data: hello })).status).toBe(200);
    });
  });

  describe('values', () => {
    it.each([
      [{}, 'data must be object'],
      [{ data: null }, 'data must be object'],
      [{ data: 'hello' }, 'data must be object'],
      [{ data: { message: 'hello' } }, 'data.message must be object'],
      [
        { data: { message: { role: 'pirate', content: [] } } },
        'data.message.role must be equal to one of the allowed values',
      ],
      [{ data: { message: { role: 'user', content: 'hello' } } }, 'data.message.content must be array'],
      [{ data: { message: { role: 'user', content: [{ text: 7 }] } } }, 'data.message.content.0.text must be string'],
      [{ data: { resume: { respond: [{}] } } }, "data.resume.respond.0 must have required property 'toolResponse'"],
      [{ data: { detach: 'yes' } }, 'data.detach must be boolean'],
      [{ data: hello, init: null }, 'init must be object'],
      [{ data: hello, init: [] }, 'init must be object'],
      [{ data: hello, init: { snapshotId: 5 } }, 'init.snapshotId must be string'],
      [{ data: hello, init: { state: { messages: {} } } }, 'init.state.messages must be array'],
      [{ data: hello, init: { sessionId: ' ' } }, 'A sessionId must not be blank'],
      [{ data: hello, init: { snapshotId: 'x'.repeat(2000) } }, 'at most 1024'],
    ])('%j are refused by name', async (body, message) => {
      const answer = await post(await server.start(), body);
      expect(answer.status).toBe(400);
      expect(answer.json.error.status).toBe('INVALID_ARGUMENT');
      expect(answer.json.error.message).toContain(message);
      expect(server.agent.runs).toEqual([]);
    });

    it.each([
      ['getSnapshot', {}, 'either a snapshotId or a sessionId'],
      ['getSnapshot', { snapshotId: 's', sessionId: 'S' }, 'either a snapshotId or a sessionId'],
      ['getSnapshot', { snapshotId: '' }, 'must not be blank'],
      ['abort', {}, "data must have required property 'snapshotId'"],
      ['abort', { snapshotId: '' }, 'must not be blank'],
    ])('%s of %j is refused', async (companion, data, message) => {
      const answer = await post(`${await server.start()}/${companion}`, { data });
      expect(answer.status).toBe(400);
      expect(answer.json.error.message).toContain(message);
    });

    it('an empty input continues the turn that init names', async () => {
      for (const init of [{ snapshotId: 's' }, { sessionId: 'S' }, { state: {} }]) {
        expect((await post(await server.start(), { data: {}, init })).status).toBe(200);
      }
      expect(server.agent.runs.map((run) => run.input)).toEqual([{}, {}, {}]);
    });

    it('an empty input without an init is refused', async () => {
      const answer = await post(await server.start(), { data: {} });
      expect(answer.status).toBe(400);
      expect(answer.json.error.message).toBe(
        'data must have a message, a resume or detach; without them, init must name the turn to run again.',
      );
      expect(server.agent.runs).toEqual([]);
    });

    it('a slash at the end of the path does not matter', async () => {
      expect((await post(`${await server.start()}/`, { data: hello })).status).toBe(200);
    });

    it('a missing init is an empty one', async () => {
      await post(await server.start(), { data: hello });
      expect(server.agent.runs[0]).toMatchObject({ input: hello, options: { init: {}, context: {} } });
    });

    it('arrive as they were sent, unknown members and reserved-looking keys too', async () => {
      const url = await server.start();
      await post(
        url,
        `{"data":{"extra":1,"message":{"role":"user","content":[{"data":{"__proto__":{"x":1},"constructor":2}}]}}}`,
      );
      const sent = JSON.stringify(server.agent.runs[0]?.input);
      expect(sent).toBe(
        '{"extra":1,"message":{"role":"user","content":[{"data":{"__proto__":{"x":1},"constructor":2}}]}}',
      );
      expect(({} as { x?: number }).x).toBeUndefined();
    });
  });
});
