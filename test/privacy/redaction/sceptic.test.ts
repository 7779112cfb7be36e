/** Tries each way to get a card number into a database. Uncovered ways are here with the reason, and in docs/privacy.md. */
import { z, type Part } from 'genkit';
import { genkit } from 'genkit/beta';
import { defineAgent, defineCustomAgent, FileSessionStore, type SessionStore } from 'genkitx-agents';
import { piiRules, redacting } from 'genkitx-agents/privacy';
import { describe, expect, it } from 'vitest';
import { call, user } from '../../agent/support/helpers.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import type { FullStore } from '../rights/erase-suite.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { findOnDisk, SECRET } from './support.ts';

const CARD = '4111111111111111';
const SPACED = '4111 1111 1111 1111';
const rules = piiRules({ kinds: ['credit-card'] });
const createdAt = '2026-01-01T00:00:00.000Z';

function open(folder: string) {
  return redacting(new FileSessionStore(folder), { rules, secret: SECRET });
}

type Plant = (store: SessionStore) => Promise<unknown>;

/** The texts that the folder of a store holds, escaped or not, after `work`. */
async function storedBy(plant: Plant, texts: readonly string[], isPlain = false): Promise<string[]> {
  const folder = temporaryFolder();
  const store = isPlain ? new FileSessionStore(folder) : open(folder);
  await plant(store);
  await store.close();
  const escape = (text: string) => JSON.stringify(text).slice(1, -1);
  return findOnDisk(folder, new Set(texts.flatMap((text) => [text, escape(text), escape(escape(text))])));
}

/** A store without redaction holds it, so that the search is proved to find it. */
async function expectReplaced(plant: Plant, texts: readonly string[]): Promise<void> {
  expect(await storedBy(plant, texts, true)).not.toEqual([]);
  expect(await storedBy(plant, texts)).toEqual([]);
}

const saving =
  (members: object): Plant =>
  (store) =>
    store.saveSnapshot('a', () => ({ sessionId: 's', createdAt, status: 'completed', ...members }) as never);

const digitsFrom = (zero: number) => SPACED.replaceAll(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)));
const inState = (custom: unknown) => ({ state: { custom: { value: custom } } });
const inMessage = (...content: unknown[]) => ({ state: { messages: [{ role: 'model', content }] } });

describe('a way of writing it', () => {
  it.each<[string, string]>([
    ['plain', CARD],
    ['with spaces', SPACED],
    ['with hyphens', SPACED.replaceAll(' ', '-')],
    ['with dots', SPACED.replaceAll(' ', '.')],
    ['with slashes', SPACED.replaceAll(' ', '/')],
    ['with tabs', SPACED.replaceAll(' ', '\t')],
    ['with no-break spaces', SPACED.replaceAll(' ', '\u00a0')],
    ['with dashes of typography', SPACED.replaceAll(' ', '–')],
    ['over two lines', '4111 1111\n1111 1111'],
    ['with full-width digits', digitsFrom(0xff10)],
    ['with Arabic-Indic digits', digitsFrom(0x660)],
    ['with Devanagari digits', digitsFrom(0x966)],
    ['with mathematical digits', digitsFrom(0x1d7ce)],
    ['with keycaps', CARD.replaceAll(/\d/g, '$&\ufe0f\u20e3')],
    ['with zero-width joiners', CARD.split('').join('\u200d')],
    ['with soft hyphens', SPACED.replaceAll(' ', '\u00ad')],
    ['touched by letters', `card${CARD}now`],
    ['in quotation marks', `«${SPACED}»`],
    ['in a URL', `https://shop.example/pay?card=${CARD}&cvc=1`],
    ['in markup', `<b>${SPACED}</b>`],
    ['of American Express', '3782 822463 10005'],
    ['as JSON text', JSON.stringify({ card: SPACED })],
    ['as a number in JSON text', `{"card": ${CARD}}`],
    ['as a name in JSON text', JSON.stringify({ [CARD]: 1 })],
    ['as JSON text in JSON text in JSON text', JSON.stringify([JSON.stringify({ a: JSON.stringify([SPACED]) })])],
    ['in what looks like a placeholder', `[CARD_${CARD}]`],
  ])('%s', async (_, written) => {
    await expectReplaced(saving(inMessage({ text: `Take ${written}, please.` })), [written]);
    await expectReplaced(saving(inMessage({ text: written })), [written, CARD, SPACED]);
  });
});

it('as escapes in JSON text', async () => {
  const written = `{"card": "${CARD.replaceAll(/\d/g, '\\u003$&')}"}`;
  expect(JSON.parse(written)).toEqual({ card: CARD });
  await expectReplaced(saving(inMessage({ text: written })), [written]);
});

describe('a place in the stored data', () => {
  it.each<[string, object]>([
    ['a name in a state', inState({ [SPACED]: 1 })],
    ['a number', inState(Number(CARD))],
    ['a number with an exponent', inState(4.111111111111111e15)],
    ['a nested list', inState([[[SPACED]]])],
    ['a state member of no known name', { state: { notes: SPACED } }],
    ['a name of a state member', { state: { [SPACED]: 1 } }],
    ['reasoning', inMessage({ reasoning: SPACED })],
    ['a data part', inMessage({ data: { card: SPACED } })],
    ['the metadata of a part', inMessage({ text: 'a', metadata: { card: SPACED } })],
    ['the metadata of a message', { state: { messages: [{ ...user('a'), metadata: { [SPACED]: Number(CARD) } }] } }],
    ['the role of a message', { state: { messages: [{ role: SPACED, content: [] }] } }],
    ['a tool’s input', inMessage({ toolRequest: { name: 'pay', input: { card: Number(CARD) } } }, { text: 'b' })],
    ['a tool’s output', inMessage({ toolResponse: { name: 'pay', output: JSON.stringify({ card: SPACED }) } })],
    ['a tool’s ref', inMessage({ toolResponse: { name: 'pay', ref: SPACED, output: 1 } })],
    ['a tool’s name', inMessage({ toolResponse: { name: SPACED, output: 1 } })],
    ['the content of a tool’s response', inMessage({ toolResponse: { name: 'p', content: [{ text: SPACED }] } })],
    ['a resource', inMessage({ resource: { uri: `card:${SPACED}` } })],
    ['the type of a medium', inMessage({ media: { url: 'https://a.example/b', contentType: SPACED } })],
    ['a text in the place of a URL', inMessage({ media: { url: `see ${SPACED}` } })],
    ['an artifact’s name', { state: { artifacts: [{ name: SPACED, parts: [] }] } }],
    ['an artifact’s text', { state: { artifacts: [{ parts: [{ text: SPACED }] }] } }],
    ['an artifact’s metadata', { state: { artifacts: [{ parts: [], metadata: { [SPACED]: SPACED } }] } }],
    ['an error’s message', { status: 'failed', error: { message: SPACED } }],
    ['an error’s details', { status: 'failed', error: { message: 'a', details: { [SPACED]: { n: Number(CARD) } } } }],
    ['a finish reason', { finishReason: SPACED }],
    ['a time', { updatedAt: SPACED }],
    ['a snapshot member of no known name', { note: { [SPACED]: SPACED } }],
    ['a forged key of a seal', { sealed: SPACED }],
    ['a snapshot that runs', { status: 'pending', state: { messages: [user(SPACED)] }, input: { text: SPACED } }],
    ['a tool request that waits', inMessage({ toolRequest: { name: 'pay', ref: SPACED, input: SPACED } })],
    [
      'a snapshot that was aborted',
      { status: 'aborted', error: { message: SPACED }, state: { messages: [user(SPACED)] } },
    ],
  ])('%s', async (_, members) => {
    await expectReplaced(saving(members), [CARD, SPACED]);
  });

  it.each<[string, Plant]>([
    ['a session’s title', (store) => save(store, { session: { title: SPACED, agent: SPACED } })],
    [
      'a record’s value',
      (store) => (store as FullStore).writeRecord({ sessionId: 's', kind: 'a', key: 'b', value: { [SPACED]: [CARD] } }),
    ],
    [
      'a record of a user',
      (store) =>
        save(store, {
          scopes: [{ id: { scope: 'user', appName: 'a', userId: 'b' }, change: () => ({ [SPACED]: SPACED }) }],
        }),
    ],
    ['an aborted turn, and its reason', (store) => aborted(store)],
    ['an interrupt’s question, and the answer to it', (store) => interrupted(store)],
    ['a handler’s custom status', (store) => customStatus(store)],
  ])('%s', async (_, plant) => {
    await expectReplaced(plant, [CARD, SPACED]);
  });

  it.each<[string, (store: ReturnType<typeof open>) => Promise<unknown>]>([
    ['a session’s id', (store) => store.saveSnapshot('a', () => ({ sessionId: SPACED, createdAt }))],
    ['a snapshot’s id', (store) => store.saveSnapshot(CARD, () => ({ sessionId: 's', createdAt }))],
    ['a parent’s id', (store) => store.saveSnapshot('a', () => ({ sessionId: 's', parentId: SPACED, createdAt }))],
    [
      'the id of a state’s session',
      (store) => store.saveSnapshot('a', () => ({ createdAt, state: { sessionId: SPACED } })),
    ],
    ['an owner’s id', (store) => save(store, { session: { ownerId: SPACED } })],
    [
      'a user’s id',
      (store) => save(store, { scopes: [{ id: { scope: 'user', appName: 'a', userId: SPACED }, change: () => ({}) }] }),
    ],
    [
      'an app’s name',
      (store) => save(store, { scopes: [{ id: { scope: 'app', appName: SPACED }, change: () => ({}) }] }),
    ],
    ['a record’s kind', (store) => store.writeRecord({ sessionId: 's', kind: SPACED, key: 'b', value: 1 })],
    ['a record’s key', (store) => store.writeRecord({ sessionId: 's', kind: 'a', key: SPACED, value: 1 })],
  ])('%s is refused', async (_, plant) => {
    const folder = temporaryFolder();
    const store = open(folder);
    await expect(plant(store)).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^(?!.*4111).*personal data \(credit-card\)/),
    });
    await store.close();
    expect(findOnDisk(folder, [CARD, SPACED])).toEqual([]);
  });
});

describe('not covered', () => {
  const half = [SPACED.slice(0, 9), SPACED.slice(10)] as const;
  it.each<[string, string, object, string]>([
    ['split over two parts', 'each text is searched alone', inMessage({ text: half[0] }, { text: half[1] }), half[0]],
    ['split over two members', 'each text is searched alone', inState({ a: half[0], b: half[1] }), half[1]],
    ['a list of digits', 'each number is searched alone', inState(CARD.split('').map(Number)), '[4,1,1'],
    ['spelled out', 'no form of its own', inMessage({ text: 'four one one one' }), 'four one one'],
    ['backwards, or with another digit added', 'no form of its own', inMessage({ text: `${CARD}7` }), `${CARD}7`],
    ['base64', 'texts are not decoded', inMessage({ text: btoa(SPACED) }), btoa(SPACED)],
    ['hexadecimal', 'texts are not decoded', inMessage({ text: 'x34313131' }), 'x34313131'],
    ['percent-encoded digits', 'texts are not decoded', inMessage({ text: '%34%31%31%31' }), '%34%31%31'],
    ['escapes outside of JSON', 'texts are not decoded', inMessage({ text: 'So: \\u0034\\u0031' }), '\\u0034'],
    ['HTML entities', 'texts are not decoded', inMessage({ text: '4111&nbsp;1111' }), '4111&nbsp;1111'],
    [
      'other signs between the digits',
      'numbers in a row look so',
      inMessage({ text: '4111:1111:1111:1111 **4111** **1111** **1111** **1111**' }),
      '4111:1111:1111:1111 **4111** **1111**',
    ],
    ['after the name of another number', 'articles have numbers', inMessage({ text: `EAN ${CARD}` }), CARD],
    ['a fraction', 'measured values have many digits', inMessage({ text: `${CARD}.5` }), CARD],
    [
      'a data: URL',
      'files are left alone',
      inMessage({ media: { url: `data:text/plain;base64,${btoa(SPACED)}` } }),
      btoa(SPACED),
    ],
    ['a medium’s URL', 'files are left alone', inMessage({ media: { url: `https://a.example/${CARD}` } }), CARD],
    [
      'a wrong check digit',
      'many numbers have 16 digits',
      inMessage({ text: '4111 1111 1111 1112' }),
      '4111 1111 1111 1112',
    ],
  ])('%s: %s', async (_, __, members, stored) => {
    expect(await storedBy(saving(members), [stored])).not.toEqual([]);
  });

  it('a name of a tenant: it is part of the path', async () => {
    const folder = temporaryFolder();
    const inner = new FileSessionStore(folder, { snapshotPathPrefix: () => CARD });
    await save(redacting(inner, { rules, secret: SECRET }), {});
    await inner.close();
    expect(findOnDisk(folder, [CARD])).not.toEqual([]);
  });
});

function save(store: SessionStore, options: object): Promise<unknown> {
  return store.saveSnapshot('a', () => ({ sessionId: 's', createdAt, status: 'completed' }), options);
}

async function aborted(store: SessionStore): Promise<void> {
  const controller = new AbortController();
  const agent = defineCustomAgent(genkit({}), { name: 'a', store, onAbort: 'keep' }, async (sess) => {
    await sess.run(async () => controller.abort(new Error(`No more of ${SPACED}`)));
    return {};
  });
  await call(agent, [SPACED], { sessionId: 's' }, { abortSignal: controller.signal });
}

async function interrupted(store: SessionStore): Promise<void> {
  const ai = genkit({});
  ai.defineTool({ name: 'pay', description: 'Pays.', inputSchema: z.any() }, async (input, { interrupt, resumed }) => {
    if (!resumed) interrupt({ question: `Charge ${SPACED}?` });
    return `charged ${input.card}`;
  });
  const pay: Part = { toolRequest: { name: 'pay', ref: '1', input: { card: SPACED } } };
  const { name } = scriptedModel(ai, { replies: [[pay], `Charged ${SPACED}`] });
  const agent = defineAgent(ai, { name: 'a', model: name, tools: ['pay'], store });
  expect((await call(agent, ['pay'], { sessionId: 's' })).output.finishReason).toBe('interrupted');
  const restart = { ...pay, metadata: { resumed: { note: `yes, ${SPACED}` } } };
  expect(
    (await call(agent, [{ resume: { restart: [restart as never] } }], { sessionId: 's' })).output.finishReason,
  ).toBe('stop');
}

async function customStatus(store: SessionStore): Promise<void> {
  const agent = defineCustomAgent<{ status?: string }>(genkit({}), { name: 'a', store }, async (sess) => {
    await sess.run(async () => sess.updateCustom(() => ({ status: `Charging ${SPACED}` })));
    return {};
  });
  await call(agent, ['hi'], { sessionId: 's' });
}
