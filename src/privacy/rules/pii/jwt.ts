import { patternRule, type Span } from './patterns/pattern-rule.ts';

/** The header is base64url of JSON, which begins with `{"`. Three parts, the signature may be empty; five if it is encrypted. */
const TOKEN = /(?<![\w-])eyJ[\w-]+\.[\w-]*\.[\w-]*(?:\.[\w-]+\.[\w-]+)?/g;

/** JSON web tokens, signed or encrypted. */
export const jwt = patternRule('jwt', 16_384, function* (text): Generator<Span> {
  for (const { 0: token, index: start } of text.matchAll(TOKEN)) {
    if (isHeader(token.slice(0, token.indexOf('.')))) yield { start, end: start + token.length };
  }
});

function isHeader(part: string): boolean {
  try {
    return 'alg' in (JSON.parse(Buffer.from(part, 'base64url').toString()) as object);
  } catch {
    return false;
  }
}
