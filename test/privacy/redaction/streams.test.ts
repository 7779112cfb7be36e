/** Kept streams hold nothing that the rules find, wherever a value is divided. */
import { InMemoryStreamManager, type StreamManager } from 'genkit/beta';
import { piiRules, redactingStreams, type PrivacyRule, type RedactingOptions } from 'genkitx-agents/privacy';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, it, test } from 'vitest';
import { Random } from '../../support/random.ts';
import { seed } from '../../support/scale.ts';
import { stubAgent } from '../../server/support/stub-agent.ts';
import { done, hello } from '../../server/support/stub-server.ts';
import { STREAM_ID } from '../../server/support/kept-turns.ts';
import { planted, SECRET } from './support.ts';

const CARD = '4111 1111 1111 1111';
const EMAIL = 'anna.smith@example.com';
const KEY = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n'.repeat(4)}-----END PRIVATE KEY-----`;
const rules = piiRules({ kinds: ['credit-card', 'email', 'private-key'] });

/** A manager, and the frames that it got, in order. */
function kept(options: Partial<RedactingOptions> = {}) {
  const chunks: unknown[] = [];
  const ends: unknown[] = [];
  const inner: StreamManager = {
    open: async () => ({
      write: async (chunk) => void chunks.push(chunk),
      done: async (output) => void ends.push(output),
      error: async (error) => void ends.push(error),
    }),
    subscribe: async () => ({ unsubscribe: () => {} }),
  };
  const manager = redactingStreams(inner, { rules, secret: SECRET, ...options });
  return { manager, chunks, ends };
}

const modelChunk = (text: string, index = 0, name = 'text') => ({
  modelChunk: { role: 'model', index, content: [{ [name]: text }] },
});
type Chunk = ReturnType<typeof modelChunk>;
const textOf = (chunks: readonly unknown[], name = 'text') =>
  (chunks as Partial<Chunk>[]).map((chunk) => chunk.modelChunk?.content[0]?.[name] ?? '').join('');

/** The kept frames of a message whose text arrives in these parts. */
async function textKept(pieces: readonly string[], options: Partial<RedactingOptions> = {}): Promise<string> {
  const { manager, chunks } = kept(options);
  const stream = await manager.open<unknown, unknown>('s');
  for (const piece of pieces) await stream.write(modelChunk(piece));
  await stream.done({});
  expect(chunks).toHaveLength(pieces.length);
  return textOf(chunks);
}

describe('a value that is divided', () => {
  it.each([
    ['a card number', CARD, /^Take \[CREDIT_CARD_\d{5}\], please\. And more\.$/],
    ['an e-mail address', EMAIL, /^Take \[EMAIL_\d{5}\], please\. And more\.$/],
    ['a private key', KEY, /^Take \[PRIVATE_KEY_\d{5}\], please\. And more\.$/],
  ])('%s: after each of its characters', async (_, value, expected) => {
    const text = `Take ${value}, please. And more.`;
    for (let cut = 0; cut <= text.length; cut++) {
      expect(await textKept([text.slice(0, cut), text.slice(cut)])).toMatch(expected);
    }
    expect(await textKept(text.split(''))).toMatch(expected);
  });

  it('has its placeholder in the piece that ends it, so that a client that skips the pieces it has loses nothing', async () => {
    const { manager, chunks } = kept();
    const stream = await manager.open<unknown, unknown>('s');
    for (const piece of ['Write to an', 'na@example', '.com today', ', please.']) await stream.write(modelChunk(piece));
    await stream.done({});
    const texts = chunks.map((chunk) => textOf([chunk]).replace(/\d{5}/, 'n'));
    expect(texts).toEqual(['Write to ', '', '[EMAIL_n] today', ', please.']);
  });

  it(`in a long text of any pieces (seed ${seed})`, async () => {
    const random = new Random(seed);
    // Short values, so that much is released before the end.
    const options = { rules: [planted()] };
    for (let run = 0; run < 30; run++) {
      const values = Array.from({ length: 20 }, () => `plant-${String(random.below(10_000)).padStart(4, '0')}-x`);
      const text = values.map((value) => 'word '.repeat(random.below(40)) + value).join(random.pick([' ', '']));
      const pieces: string[] = [];
      for (let from = 0; from < text.length;) {
        const size = 1 + random.below(random.pick([3, 20, 300]));
        pieces.push(text.slice(from, from + size));
        from += size;
      }
      const result = await textKept(pieces, options);
      expect(result).not.toContain('plant-');
      expect(result.replaceAll(/\[PLANT_\d{5}\]/g, 'P')).toBe(text.replaceAll(/plant-\d{4}-x/g, 'P'));
    }
  });

  it('across other chunks, in reasoning too, and text beside it is a text of its own', async () => {
    const { manager, chunks } = kept();
    const stream = await manager.open<unknown, unknown>('s');
    await stream.write(modelChunk('Mail anna@exam', 0, 'reasoning'));
    await stream.write(modelChunk('Card 4111 1111'));
    await stream.write({ customPatch: [{ op: 'add', path: '/to', value: EMAIL }] });
    await stream.write(modelChunk('ple.com now', 0, 'reasoning'));
    await stream.write(modelChunk(' 1111 1111 it is'));
    await stream.done({});
    expect(textOf(chunks, 'reasoning')).toMatch(/^Mail \[EMAIL_\d{5}\] now$/);
    expect(textOf(chunks)).toMatch(/^Card \[CREDIT_CARD_\d{5}\] it is$/);
    expect(JSON.stringify(chunks[2])).toMatch(/"value":"\[EMAIL_\d{5}\]"/);
  });
});

describe('a stream', () => {
  it('is kept unchanged without findings, and a message at the latest when the next one begins', async () => {
    const { manager, chunks, ends } = kept();
    const stream = await manager.open<unknown, unknown>('s');
    const all = [modelChunk('one '), modelChunk('two '), modelChunk('three', 1), { turnEnd: { snapshotId: 'x' } }];
    for (const [i, chunk] of all.entries()) {
      await stream.write(chunk);
      expect(chunks).toEqual(all.slice(0, [0, 0, 2, 4][i]));
    }
    await stream.done({ message: 'ok' });
    expect(ends).toEqual([{ message: 'ok' }]);
  });

  it('holds back at most twice the length of the longest value', async () => {
    const { manager, chunks } = kept({ rules: [planted()] });
    const stream = await manager.open<unknown, unknown>('s');
    let written = 0;
    for (let n = 0; n < 200; n++) {
      await stream.write(modelChunk('seven ch'));
      written += 8;
      expect(written - textOf(chunks).length).toBeLessThanOrEqual(2 * (12 + 64) + 8);
    }
  });

  it('is searched a few times at most, however it is divided', async () => {
    const rule = planted();
    const { manager } = kept({ rules: [rule] });
    const stream = await manager.open<unknown, unknown>('s');
    const text = 'word '.repeat(1000);
    await stream.write(modelChunk(text));
    for (const character of text) await stream.write(modelChunk(character));
    await stream.done({});
    // Besides: the names and the numbers of each chunk.
    expect(rule.chars - text.length * 60).toBeLessThan(text.length * 8);
  });

  it('has no findings in tool requests, patches, artifacts, names and results, and keeps ids', async () => {
    const { manager, chunks, ends } = kept();
    const stream = await manager.open<unknown, unknown>('s');
    const id = '4111 1111 1111 1111';
    const toolRequest = { name: 'pay', ref: '1', input: { [CARD]: EMAIL, json: JSON.stringify({ card: CARD }) } };
    await stream.write({
      modelChunk: { content: [{ toolRequest: { ...toolRequest, partial: true, input: '4111 11' } }] },
    });
    await stream.write({ modelChunk: { content: [{ toolRequest }] } });
    await stream.write({ artifact: { name: EMAIL, parts: [{ text: CARD }] } });
    await stream.write({ turnEnd: { snapshotId: id, finishReason: 'stop' } });
    await stream.done({
      snapshotId: id,
      message: { content: [{ text: CARD }] },
      state: { custom: { n: 4111111111111111 } },
    });
    const all = JSON.stringify([chunks, ends]);
    expect(all).not.toContain('@example');
    expect(all.replaceAll(`"snapshotId":"${id}"`, '')).not.toMatch(/4111/);
    expect(JSON.stringify(chunks[3])).toContain(id);
    expect(JSON.stringify(ends)).toContain(id);
  });

  it('has an error without findings, and keeps its status', async () => {
    const { manager, ends } = kept();
    const stream = await manager.open<unknown, unknown>('s');
    await stream.write(modelChunk(CARD));
    await stream.error(Object.assign(new Error(`No ${CARD}`), { status: 'UNAVAILABLE', detail: { of: EMAIL } }));
    const [error] = ends as [Error];
    expect(error).toMatchObject({ status: 'UNAVAILABLE', message: expect.stringMatching(/^No \[CREDIT_CARD/) });
    expect(JSON.stringify([Object.entries(error), error.message, error.stack])).not.toMatch(/4111|@example/);
    const unreadable = { value: 1n, message: CARD };
    await (await manager.open<unknown, unknown>('t')).error(unreadable);
    expect(ends[1]).toMatchObject({ message: 'The stream ended with an error.' });
  });

  it('of plain texts, and of frames that come together, is searched too', async () => {
    const { manager, chunks, ends } = kept();
    const stream = await manager.open<string, string>('s');
    for (const piece of ['A card: 4111 11', '11 1111 1111.']) await stream.write(piece);
    await stream.done(`data: ${JSON.stringify({ result: EMAIL })}\n\n`);
    expect(chunks.join('')).toMatch(/^A card: \[CREDIT_CARD_\d{5}\]\.$/);
    expect(ends[0]).toMatch(/^data: \{"result":"\[EMAIL_\d{5}\]"\}\n\n$/);
  });

  it.each<[string, Partial<PrivacyRule>]>([
    [
      'throws',
      {
        find: () => {
          throw new Error('no service');
        },
      },
    ],
    ['hangs', { find: () => new Promise(() => {}) }],
  ])('with a rule that %s is refused, or kept as it is', async (_, rule) => {
    const failing = { rules: [{ name: 'r', maxLength: 1, find: () => [], ...rule }], timeoutMs: 50 };
    const refused = await kept(failing).manager.open<unknown, unknown>('s');
    await expect(refused.write(modelChunk(CARD))).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    await expect(refused.done({})).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    const { manager, chunks } = kept({ ...failing, onFailure: 'write' });
    const stream = await manager.open<unknown, unknown>('s');
    await stream.write(modelChunk(CARD));
    await stream.done({});
    expect(textOf(chunks)).toBe(CARD);
  });

  it('with rules that are slow and asynchronous keeps its order', async () => {
    const slow = planted(() => new Promise((resolve) => void setImmediate(resolve)));
    const { manager, chunks } = kept({ rules: [slow] });
    const stream = await manager.open<unknown, unknown>('s');
    const pieces = Array.from({ length: 100 }, (_, n) => `${n} plant-${String(n).padStart(4, '0')}-x, `);
    await Promise.all([...pieces.map((piece) => stream.write(modelChunk(piece))), stream.done({})]);
    expect(textOf(chunks).replaceAll(/\[PLANT_\d{5}\]/g, 'P')).toBe(pieces.map((_, n) => `${n} P, `).join(''));
  });
});

test('a client that stays sees the original, one that reconnects sees placeholders', async () => {
  const streamManager = redactingStreams(new InMemoryStreamManager(), { rules, secret: SECRET });
  const pieces = ['I have ', '4111 1111', ' 1111 1', '111 of ann', 'a@example.com', '.'];
  const agent = stubAgent('a', (_, { onChunk }) => {
    for (const piece of pieces) onChunk?.(modelChunk(piece));
    return { ...done, message: { role: 'model', content: [{ text: pieces.join('') }] } };
  });
  const handler = agentHandler([agent], { anonymous: true, streamManager });
  const ask = (body: unknown, headers: Record<string, string> = {}) =>
    handler(
      new Request('http://agents.test/a', {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
        body: JSON.stringify(body),
      }),
    );
  const first = await ask({ data: hello });
  const live = await first.text();
  const again = await (await ask({}, { [STREAM_ID]: first.headers.get(STREAM_ID)! })).text();
  expect(live).toContain(CARD);
  expect(again).not.toMatch(/4111|example\.com/);
  expect(again.split('\n\n')).toHaveLength(live.split('\n\n').length);
  const said = [...again.matchAll(/"text":"([^"]*)"/g)].map(([, text]) => text);
  expect(said.slice(0, pieces.length).join('')).toMatch(/^I have \[CREDIT_CARD_\d{5}\] of \[EMAIL_\d{5}\]\.$/);
  expect(said.at(-1)).toBe(said.slice(0, pieces.length).join(''));
});
