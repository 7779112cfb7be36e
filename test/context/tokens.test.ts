/** The estimate of tokens beside a real tokenizer, on 100 KB of each kind of text that the repository and its tools have. */
import type { Part } from 'genkit';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { Calibration } from '../../src/context/tokens/calibration.ts';
import { TokenCounter } from '../../src/context/tokens/counter.ts';
import { estimateTokens } from '../../src/session/log/estimate-tokens.ts';
import { inputLimitOf } from '../../src/context/tokens/model-limits.ts';
import { TEXTS } from './support/texts.ts';

describe.each(TEXTS)('the tokens of %s', (_, text) => {
  const half = Math.floor(text.length / 2);
  const deviation = (estimate: number, real: number) => Math.abs(estimate / real - 1);

  test('are estimated within 20 %', () => {
    expect(deviation(estimateTokens(text), countTokens(text))).toBeLessThan(0.2);
  });

  test('are estimated within 10 % in the second half, after calibration by the first', () => {
    const calibration = new Calibration();
    const [first, second] = [text.slice(0, half), text.slice(half)];
    calibration.learn('gpt', estimateTokens(first), countTokens(first));
    const estimate = estimateTokens(second) * calibration.factorOf('gpt');
    expect(deviation(estimate, countTokens(second))).toBeLessThan(0.1);
  });
});

describe('calibration', () => {
  test('is by model', () => {
    const calibration = new Calibration();
    calibration.learn('a', 100, 150);
    expect([calibration.factorOf('a'), calibration.factorOf('b')]).toEqual([1.5, 1]);
  });

  test('stays while it is nearly right, so that cuts stay where they are', () => {
    const calibration = new Calibration();
    for (let i = 0; i < 20; i++) calibration.learn('a', 1_000, 1_000 + 10 * (i % 4));
    expect(calibration.factorOf('a')).toBe(1);
  });

  test('follows a model that changes', () => {
    const calibration = new Calibration();
    for (let i = 0; i < 20; i++) calibration.learn('a', 1_000, 800);
    for (let i = 0; i < 40; i++) calibration.learn('a', 1_000, 1_600);
    expect(calibration.factorOf('a')).toBeCloseTo(1.6, 0);
  });

  test.each([0, -5, Number.NaN, Infinity, 1, 1e9, undefined])('ignores a count of %s', (counted) => {
    const calibration = new Calibration();
    calibration.learn('a', 1_000, counted);
    expect(calibration.factorOf('a')).toBe(1);
  });
});

describe('a message', () => {
  const tokensOf = (part: Part) =>
    new TokenCounter((text) => text.length).message({ role: 'user', content: [part] }) - 4;

  test('counts media by their kind, whatever the length of their data', () => {
    const media = (contentType: string | undefined, url = 'https://example.com/x') =>
      tokensOf({ media: { contentType, url } });
    expect(media('image/png', `data:image/png;base64,${'A'.repeat(100_000)}`)).toBe(1_100);
    expect(media(undefined, 'data:image/png;base64,AAAA')).toBe(1_100);
    expect([media('application/pdf'), media('audio/mp3'), media('video/mp4'), media(undefined)]).toEqual([
      5_000, 2_000, 16_000, 1_000,
    ]);
  });

  test('counts what tools are asked and answer, and nothing of the metadata', () => {
    expect(tokensOf({ toolRequest: { name: 'look', input: { id: 7 } }, metadata: { note: 'long '.repeat(99) } })).toBe(
      12,
    );
    expect(tokensOf({ toolResponse: { name: 'look', output: 'abc' } })).toBe(9);
    expect(tokensOf({ data: { a: 1 } })).toBe(7);
  });

  test('can hold what JSON can not', () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    expect(tokensOf({ toolResponse: { name: 'look', output: circle } })).toBe(4);
  });
});

test.each([
  ['googleai/gemini-2.5-flash', {}, 1_048_576],
  ['googleai/gemini-2.5-flash-image', {}, 32_768],
  ['googleai/gemini-2.5-flash-preview-tts', {}, 8_192],
  ['openai/gpt-5-mini', {}, 272_000],
  ['openai/gpt-5-chat-latest', {}, 128_000 - 16_384],
  ['openai/gpt-4o-mini', {}, 128_000 - 16_384],
  ['openai/gpt-4o', { maxOutputTokens: 1_000 }, 127_000],
  ['anthropic/claude-sonnet-4', {}, 168_000],
  ['aws-bedrock/eu.anthropic.claude-3-5-sonnet-20241022-v2:0', {}, 168_000],
  ['openai/gpt-4-32k', {}, 32_768 - 4_096],
  ['openai/gpt-3.5-turbo', {}, 16_385 - 4_096],
  ['openai/gpt-4', {}, 8_000],
  ['ollama/llama3.1', {}, 8_000],
  [undefined, undefined, 8_000],
])('the budget for %s with %j is %i tokens', (name, config, tokens) => {
  expect(inputLimitOf(name, config)).toBe(tokens);
});
