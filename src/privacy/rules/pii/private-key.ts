import { patternRule, type Span } from './patterns/pattern-rule.ts';

const HEADER = /-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
/** Any text up to the next line of hyphens: base64, headers, line ends or `\n`. */
const BODY = /(?:[^-]|-(?!----))*/y;
const FOOTER = /-----END [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----/y;
/** The body of a key that was cut off: lines of base64. */
const LINES = /(?:(?:\s|\\[nr])*[A-Za-z\d+/=]{16,}(?=\s|\\[nr]|$))*/y;
const SHORTEST_BODY = 40;

/** Private keys in PEM form: PKCS #1 and #8, EC, OpenSSH, PGP. */
export const privateKey = patternRule('private-key', 16_384, function* (text): Generator<Span> {
  for (const { 0: header, index: start } of text.matchAll(HEADER)) {
    const bodyStart = start + header.length;
    const bodyEnd = endOf(BODY, text, bodyStart);
    const footerEnd = endOf(FOOTER, text, bodyEnd);
    const end = footerEnd > bodyEnd ? footerEnd : endOf(LINES, text, bodyStart);
    // Not the header and the footer alone, as documentation has them.
    if (end - bodyStart >= SHORTEST_BODY + (footerEnd > bodyEnd ? header.length - 2 : 0)) yield { start, end };
  }
});

/** Where the match of a sticky pattern at `index` ends; `index` if there is none. */
function endOf(pattern: RegExp, text: string, index: number): number {
  pattern.lastIndex = index;
  return pattern.test(text) ? pattern.lastIndex : index;
}
