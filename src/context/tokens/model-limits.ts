/** The budget for a model that is not listed below. */
export const DEFAULT_MAX_TOKENS = 8_000;

interface ModelLimit {
  readonly name: RegExp;
  /** Tokens of input and output together; for models that limit them apart, tokens of the input. */
  readonly window: number;
  /** Tokens to keep free for the output if the request has no `maxOutputTokens`. `0`: the output has a limit of its own. */
  readonly output: number;
}

/**
 * Model families, by the name after the provider's; the first match counts. Genkit's model metadata has no limits. Local models are not
 * listed: their limit is a setting of the server.
 */
const LIMITS: readonly ModelLimit[] = [
  { name: /^gemini-.*-tts/, window: 8_192, output: 0 },
  { name: /^gemini-.*-image/, window: 32_768, output: 0 },
  { name: /^gemini-(1\.5|2|3|flash|pro)/, window: 1_048_576, output: 0 },
  { name: /^gpt-5(\.\d+)?-chat/, window: 128_000, output: 16_384 },
  { name: /^gpt-5/, window: 400_000, output: 128_000 },
  { name: /^gpt-4\.1/, window: 1_047_576, output: 32_768 },
  { name: /^(gpt-4o|gpt-4-turbo|chatgpt-4o)/, window: 128_000, output: 16_384 },
  { name: /^gpt-4-32k/, window: 32_768, output: 4_096 },
  { name: /^gpt-3\.?5-turbo/, window: 16_385, output: 4_096 },
  { name: /^o[134](-|$)/, window: 200_000, output: 100_000 },
  { name: /(^|\.)claude-/, window: 200_000, output: 32_000 },
];

/** The most tokens of a request to the model. Default: {@link DEFAULT_MAX_TOKENS}, which is also the least. */
export function inputLimitOf(model: string | undefined, config: unknown): number {
  const name = model?.slice(model.lastIndexOf('/') + 1) ?? '';
  const limit = LIMITS.find((each) => each.name.test(name));
  if (!limit) return DEFAULT_MAX_TOKENS;
  const { maxOutputTokens } = (config ?? {}) as { maxOutputTokens?: unknown };
  const output = limit.output > 0 && typeof maxOutputTokens === 'number' ? maxOutputTokens : limit.output;
  return Math.max(DEFAULT_MAX_TOKENS, limit.window - output);
}
