import { patternRule, textBefore, type Span } from './patterns/pattern-rule.ts';

/** Long runs of the characters that keys have. Only these are searched for keys. */
const TOKEN = /[\w.:/+=-]{16,}/g;

/** The documented forms of keys. No letter or digit stands before them. */
const KEYS: readonly RegExp[] = [
  // Amazon.
  /(?:AKIA|ASIA|ABIA|ACCA)[A-Z\d]{16}(?![A-Za-z\d])/g,
  // Google: API keys, OAuth tokens and client secrets.
  /AIza[\w-]{35}/g,
  /ya29\.[\w-]{20,}/g,
  /GOCSPX-[\w-]{28}/g,
  // GitHub, GitLab, Bitbucket.
  /gh[opusr]_[A-Za-z\d]{36,}/g,
  /github_pat_\w{22,}/g,
  /gl(?:pat|ptt|dt|rt|cbt|soat)-[\w-]{20,}/g,
  /ATBB[A-Za-z\d]{24,}/g,
  // Slack: tokens and webhooks.
  /xox[abeoprs](?:\.xox[bp])?-[\w-]{10,}/g,
  /xapp-\d-[\w-]{20,}/g,
  /hooks\.slack\.com\/(?:services|workflows)\/[\w/]{20,}/g,
  // Stripe, Square, Shopify.
  /(?:[rsp]k_(?:live|test)|whsec)_[A-Za-z\d]{16,}/g,
  /sq0(?:atp|csp)-[\w-]{22,}/g,
  /shp(?:at|ca|pa|ss)_[\da-fA-F]{32}/g,
  // Models: OpenAI and those with its form, Anthropic, Hugging Face, Groq, xAI, Perplexity, Replicate, OpenRouter.
  /sk-(?:proj-|svcacct-|admin-|or-v1-|ant-)[\w-]{20,}/g,
  /sk-[A-Za-z\d]{32,}/g,
  /(?:hf|gsk|r8)_[A-Za-z\d]{30,}/g,
  /(?:xai|pplx)-[A-Za-z\d]{40,}/g,
  // Packages: npm, PyPI, RubyGems, Docker.
  /npm_[A-Za-z\d]{36}/g,
  /pypi-[\w-]{50,}/g,
  /rubygems_[\da-f]{48}/g,
  /dckr_[op]at_[\w-]{20,}/g,
  // Mail and messages: SendGrid, Mailgun, Mailchimp, Twilio, Telegram, Discord.
  /SG\.[\w-]{16,32}\.[\w-]{16,64}/g,
  /\bkey-[\da-f]{32}(?![A-Za-z\d])/g,
  /\b[\da-f]{32}-us\d{1,2}(?![A-Za-z\d])/g,
  /\bSK[\da-f]{32}(?![A-Za-z\d])/g,
  /\b\d{8,10}:AA[\w-]{33}(?![A-Za-z\d])/g,
  /\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}(?![A-Za-z\d])/g,
  // Platforms: Airtable, DigitalOcean, Databricks, Vault, Grafana, Linear, Notion, Postman, New Relic, Doppler, Heroku, Supabase, Azure storage.
  /pat[A-Za-z\d]{14}\.[\da-f]{64}/g,
  /do[opr]_v1_[\da-f]{64}/g,
  /dapi[\da-f]{32}/g,
  /hv[sb]\.[\w-]{24,}/g,
  /(?:glsa|glc|lin_api|ntn|PMAK|NRAK|sntrys|sbp|HRKU|dp\.[ps]t|tfp)[_.-][\w-]{27,}/g,
  /AccountKey=[A-Za-z\d+/]{86}==/g,
];

/** The secret of an Amazon key has no prefix: only the name before it identifies it. */
const AMAZON_SECRET = /(?<![A-Za-z\d/+])[A-Za-z\d/+]{40}(?![A-Za-z\d/+=])/g;
const AMAZON_NAME = /secret.?(?:access.?)?key[^A-Za-z\d/+]{0,6}$/i;

/** Examples in documentation, such as `ghp_xxxxxxxx…`, have fewer different characters than real keys. */
const MIN_DIFFERENT = 8;

/** API keys and tokens of the large services, known by their prefixes. */
export const apiKey = patternRule('api-key', 512, function* (text, label): Generator<Span> {
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    for (const { start, end } of keysIn(token)) yield { start: index + start, end: index + end };
  }
  if (!/secret/i.test(`${label} ${text}`)) return;
  for (const { 0: secret, index: start } of text.matchAll(AMAZON_SECRET)) {
    if (AMAZON_NAME.test(textBefore(text, start, label, 40))) yield { start, end: start + secret.length };
  }
});

function* keysIn(token: string): Generator<Span> {
  for (const pattern of KEYS) {
    for (const { 0: key, index: start } of token.matchAll(pattern)) {
      const isInWord = start > 0 && /[A-Za-z\d]/.test(token[start - 1]!);
      if (!isInWord && new Set(key).size >= MIN_DIFFERENT) yield { start, end: start + key.length };
    }
  }
}
