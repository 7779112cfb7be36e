/** Maps letters of other alphabets to similar Latin letters. */
const LOOK_ALIKE = secondByFirst('аaеeоoрpсcуyхxіiјjѕsԁdһhԛqԝwкkмmтtвbнnαaοoρpνvιiκkτtυuεeηnωw');

/** Maps digits and signs to the letters that they replace. */
const LEET = secondByFirst('0o1i3e4a5s7t@a$s');

/** Letters with a sign between them. In "i.g.n.o.r.e a.l.l" the space ends a word; in "i g n o r e" it does not. */
const DOTTED = /(?<![\p{L}\p{N}])(?:[\p{L}\p{N}][.\-_*|/]){2,}[\p{L}\p{N}](?![\p{L}\p{N}])/gu;
const SPACED = /(?<![\p{L}\p{N}])(?:[\p{L}\p{N}][ .\-_*|/]){3,}[\p{L}\p{N}](?![\p{L}\p{N}])/gu;

/** All characters except tag characters, which are invisible copies of ASCII characters. */
const NO_TAGS = /[^\u{E0020}-\u{E007E}]+/gu;

/**
 * Returns the normalized text, and the texts that may be hidden in it by line breaks, quotation marks, spaced letters, digits for letters,
 * Base64, hexadecimal digits, invisible tag characters, or a change of direction.
 */
export function readingsOf(text: string): string[] {
  const plain = normalized(text);
  const unbroken = plain.replaceAll(/ ?["\u201c-\u201e«»]+ ?|\n+/g, ' ');
  const joined = plain
    .replaceAll(DOTTED, (dotted) => dotted.replaceAll(/[.\-_*|/]/g, ''))
    .replaceAll(SPACED, (spaced) => spaced.replaceAll(/[ .\-_*|/]/g, ''));
  const letters = plain.replaceAll(/(?<=\p{L})[013457@$]|[013457@$](?=\p{L})/gu, (sign) => LEET[sign]!);
  const readings = [plain, unbroken, joined, letters];
  for (const [encoded] of text.matchAll(/[A-Za-z0-9+/]{24,}={0,2}/g)) {
    for (const encoding of ['base64', 'hex'] as const) {
      const decoded = Buffer.from(encoded, encoding).toString('utf8');
      if (/^[\t\n\r\u0020-\u007e]{12,}$/.test(decoded)) readings.push(normalized(decoded));
    }
  }
  const tags = text.replaceAll(NO_TAGS, (others) => (/^\p{Cf}+$/u.test(others) ? '' : '\n'));
  if (tags.length > 1) {
    readings.push(normalized(tags.replaceAll(/[^\n]/gu, (tag) => String.fromCodePoint(tag.codePointAt(0)! - 0xe0000))));
  }
  if (text.includes('\u202e')) {
    readings.push(
      normalized(
        text.replaceAll(/\u202e([^\u202c\n]*)/g, (_, shown: string) => Array.from(shown).toReversed().join('')),
      ),
    );
  }
  return [...new Set(readings)];
}

function normalized(text: string): string {
  return text
    .normalize('NFKC')
    .replaceAll(/[\p{Cf}\p{Mn}\u115f\u3164]/gu, '')
    .toLowerCase()
    .replaceAll(/\p{L}/gu, toLatin)
    .replaceAll(/[\u2018\u2019]/g, "'")
    .replaceAll(/\r\n?|[\u0085\u2028\u2029]/g, '\n')
    .replaceAll(/[\t\f\v ]+/g, ' ')
    .replaceAll(/ ?\n ?/g, '\n');
}

/** Replaces a letter by the similar Latin letter. */
export function toLatin(letter: string): string {
  return LOOK_ALIKE[letter] ?? letter;
}

/** Maps the first character of each pair in the text to the second. */
function secondByFirst(pairs: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...pairs.matchAll(/(.)(.)/gu)].map(([, first, second]) => [first!, second!]));
}
